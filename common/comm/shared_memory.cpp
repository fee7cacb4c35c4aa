#include "common/comm/shared_memory.hpp"

#include <thread>

#include "common/comm/mailbox.hpp"
#include "common/support/error.hpp"

namespace fivecuts {
namespace {

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

SharedMemory::SharedMemory(std::vector<std::byte*> segments, int rank, std::shared_ptr<void> owner,
                           const std::atomic<bool>* given_up)
    : segments_(std::move(segments)),
      rank_(static_cast<std::size_t>(rank)),
      owner_(std::move(owner)),
      given_up_(given_up),
      polls_(segments_.size() <= std::thread::hardware_concurrency() ? 1000 : 0) {
  new (segments_[rank_]) Arrivals(0);
}

// Who waits on a core of its own sees the others' store at once. Where cores are fewer than ranks,
// the one that is waited for may need this one.
void SharedMemory::barrier() {
  ++round_;
  arrivals(rank_).store(round_, std::memory_order_release);
  for (std::size_t r = 0; r < segments_.size(); ++r) {
    for (int polls = 0; arrivals(r).load(std::memory_order_acquire) < round_; ++polls) {
      if (polls < polls_) {
        pause();
        continue;
      }
      if (given_up_ != nullptr) require(!*given_up_, peer_gone);
      std::this_thread::yield();
    }
  }
}

}  // namespace fivecuts
