#include "common/comm/stream.hpp"

#include <exception>

#include "common/observe/clock.hpp"

namespace fivecuts {

CommStream::~CommStream() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

std::future<void> CommStream::run(std::function<void()> work) {
  Task task{std::move(work), {}};
  std::future<void> result = task.done.get_future();
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(task));
    if (!thread_.joinable()) thread_ = std::thread([this] { loop(); });
  }
  wake_.notify_one();
  return result;
}

void CommStream::loop() {
  this_thread_is(Lane::comm);
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Task task = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    std::exception_ptr thrown;
    try {
      task.work();
    } catch (...) {
      thrown = std::current_exception();
    }
    // Released before anyone hears of it: buffers are then out of the ledger when wait() returns.
    task.work = nullptr;
    if (thrown) {
      task.done.set_exception(std::move(thrown));
    } else {
      task.done.set_value();
    }
    lock.lock();
  }
}

}  // namespace fivecuts
