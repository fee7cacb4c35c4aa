#include "common/comm/guard.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "common/support/error.hpp"

namespace fivecuts {

const char* name_of(Operation operation) {
  static constexpr const char* names[] = {"send",      "exchange",      "all_reduce",
                                          "broadcast", "all_gather",    "reduce_scatter",
                                          "split",     "shared memory", "end of run"};
  return names[static_cast<std::size_t>(operation)];
}

std::string describe(const Envelope& e) {
  switch (e.operation) {
    case Operation::end_of_run:
      return "the end of its run";
    case Operation::split:
      return fmt::format("split into '{}'", e.detail);
    default:
      break;
  }
  const std::string amount =
      fmt::format("{} of {} x {}", name_of(e.operation), e.count, name_of(e.type));
  if (e.operation == Operation::broadcast) return fmt::format("{} from rank {}", amount, e.root);
  if (e.operation == Operation::all_reduce || e.operation == Operation::reduce_scatter ||
      e.operation == Operation::shared_memory) {
    const std::string where = e.detail[0] == 0 ? "" : fmt::format(" at {}", e.detail);
    return amount + where + (e.reduction == Reduction::max ? " (max)" : "");
  }
  return amount;
}

bool same_collective(const Envelope& a, const Envelope& b) {
  return a.operation == b.operation && a.count == b.count && a.type == b.type && a.root == b.root &&
         a.reduction == b.reduction && std::strncmp(a.detail, b.detail, sizeof a.detail) == 0;
}

bool fits(const Envelope& sent, std::int64_t count, DType type) {
  return (sent.operation == Operation::send || sent.operation == Operation::exchange) &&
         sent.count == count && sent.type == type;
}

Guard::Guard(int rank, int size, double timeout_s, bool enabled)
    : rank_(rank), size_(size), timeout_(timeout_s), enabled_(enabled) {
  if (enabled_) thread_ = std::thread([this] { run(); });
}

Guard::~Guard() {
  if (!enabled_) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

Guard::Watch Guard::begin(std::string what) {
  const std::lock_guard lock(mutex_);
  waits_.push_front({std::move(what), clock_});
  return {this, waits_.begin()};
}

Guard::Watch::~Watch() {
  if (guard_ == nullptr) return;
  const std::lock_guard lock(guard_->mutex_);
  guard_->waits_.erase(at_);
}

void Guard::Watch::now(std::string what) {
  if (guard_ == nullptr) return;
  const std::lock_guard lock(guard_->mutex_);
  at_->what = std::move(what);
}

void Guard::progress() {
  const std::lock_guard lock(mutex_);
  for (Watch::Wait& wait : waits_) wait.since = clock_;
}

void Guard::run() {
  using namespace std::chrono_literals;
  // The ranks of a deadlock began to wait at about the same time: each may say its part before the
  // first one's end takes the others along.
  const auto grace = 600ms;
  // Seldom, where the limit is long: a thousand ranks of one process have a thousand watchdogs.
  const auto interval = std::clamp<std::chrono::duration<double>>(timeout_ / 100, 50ms, 500ms);
  std::unique_lock lock(mutex_);
  auto last = std::chrono::steady_clock::now();
  while (!wake_.wait_for(lock, interval, [this] { return stopping_; })) {
    // A process that was stopped (Ctrl-Z, a debugger) finds hours gone: not its peers' fault.
    const auto now = std::chrono::steady_clock::now();
    clock_ += std::min<std::chrono::duration<double>>(now - last, 1s);
    last = now;
    const auto late = std::find_if(waits_.begin(), waits_.end(), [&](const Watch::Wait& wait) {
      return clock_ - wait.since > timeout_;
    });
    if (late == waits_.end()) continue;
    // The caller and its communication stream may both wait; the oldest wait is said first.
    std::string all;
    for (auto wait = waits_.rbegin(); wait != waits_.rend(); ++wait) {
      all += (all.empty() ? "" : "; and for ") + wait->what;
    }
    std::fprintf(stderr, "rank %d of %d: no progress for %g s (--timeout): waiting for %s\n", rank_,
                 size_, timeout_.count(), all.c_str());
    std::fflush(nullptr);
    std::this_thread::sleep_for(grace);
    std::_Exit(exit_guard);
  }
}

}  // namespace fivecuts
