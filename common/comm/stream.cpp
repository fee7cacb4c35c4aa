#include "common/comm/stream.hpp"

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
  std::packaged_task<void()> task(std::move(work));
  std::future<void> result = task.get_future();
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(task));
    if (!thread_.joinable()) thread_ = std::thread([this] { loop(); });
  }
  wake_.notify_one();
  return result;
}

void CommStream::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    {
      std::packaged_task<void()> task = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      task();
    }  // what the work held is released here, before the lock is taken again
    lock.lock();
  }
}

}  // namespace fivecuts
