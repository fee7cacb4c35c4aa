#pragma once
// The communication stream of a rank: one thread that runs what async() was given, in order.
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

namespace fivecuts {

class CommStream {
 public:
  CommStream() = default;
  ~CommStream();
  CommStream(const CommStream&) = delete;
  CommStream& operator=(const CommStream&) = delete;

  /// The future holds what `work` threw; when it is ready, all that `work` held has been released.
  /// The thread starts with the first work.
  std::future<void> run(std::function<void()> work);

 private:
  void loop();
  std::mutex mutex_;
  std::condition_variable wake_;
  struct Task {
    std::function<void()> work;
    std::promise<void> done;
  };
  std::deque<Task> queue_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace fivecuts
