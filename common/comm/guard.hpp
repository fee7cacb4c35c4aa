#pragma once
// Deadlock is the typical wrong answer of this subject. The guard turns it into an explained
// failure: an envelope ahead of each message says what is coming, and a watchdog says what a rank
// waits for.
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <thread>

#include "common/comm/transport.hpp"

namespace fivecuts {

enum class Operation : std::uint8_t {
  send,
  exchange,
  all_reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  split,
  shared_memory,
  end_of_run
};
const char* name_of(Operation operation);

/// What a rank is about to do, as its peers see it.
struct Envelope {
  std::int64_t count = 0;
  std::uint64_t sequence = 0;  ///< operations of this rank on this communicator so far
  double time = 0;  ///< time stamp, seconds; carried here so that data is never copied for it
  std::int32_t root = -1;  ///< of a broadcast
  Operation operation = Operation::send;
  DType type = DType::f32;
  Reduction reduction = Reduction::sum;
  char detail[33] = {};  ///< the name of a new group
};
static_assert(sizeof(Envelope) == 64);

/// "all_reduce of 24 x f32", "broadcast of 7 x i64 from rank 2", "the end of its run".
std::string describe(const Envelope& envelope);

/// True if two ranks may do these two things as one collective operation.
bool same_collective(const Envelope& a, const Envelope& b);

/// True if a message announced by `sent` fits a receive of `count` elements of `type`.
bool fits(const Envelope& sent, std::int64_t count, DType type);

/// The watchdog of one rank. When a watched wait lasts longer than the time limit, it prints one
/// sentence and ends the process with status 3.
class Guard {
 public:
  /// `enabled` false: nothing is checked and nothing is watched (benchmarks).
  Guard(int rank, int size, double timeout_s, bool enabled);
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  bool enabled() const { return enabled_; }

  /// While it lives, the rank waits for `what`, said as "waiting for ...".
  class [[nodiscard]] Watch {
   public:
    ~Watch();
    Watch(Watch&& other) noexcept : guard_(other.guard_), at_(other.at_) { other.guard_ = nullptr; }
    Watch& operator=(Watch&&) = delete;
    /// Says it more exactly; the time goes on.
    void now(std::string what);

   private:
    friend class Guard;
    struct Wait {
      std::string what;
      std::chrono::duration<double> since;  ///< on the guard's own clock
    };
    Watch(Guard* guard, std::list<Wait>::iterator at) : guard_(guard), at_(at) {}
    Guard* guard_;
    std::list<Wait>::iterator at_;
  };
  /// `what` gives the text; it is not called where nobody watches.
  template <class Text>
  Watch watch(const Text& what) {
    return enabled_ ? begin(what()) : Watch(nullptr, {});
  }

  /// The rank gets on, a GPU with its work say: the time of all its waits begins anew.
  void progress();

 private:
  Watch begin(std::string what);
  void run();
  int rank_, size_;
  std::chrono::duration<double> timeout_;
  std::chrono::duration<double> clock_{0};  ///< time in which this process was running
  bool enabled_, stopping_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::list<Watch::Wait> waits_;
  std::thread thread_;
};

}  // namespace fivecuts
