#pragma once
// The virtual clock of one rank: how long its operations and messages would take on a cluster,
// exact and the same in every run, on whatever machine the ranks really run. A teaching model;
// docs/clock.md says what it leaves out.
//
//   compute   a span of operations: flops and bytes over a roofline (Williams, Waterman, Patterson,
//             CACM 52(4), 2009)
//   message   departs when the sender's outgoing port is free; begins to come in `latency` later, or
//             when the receiver's incoming port is free; is there after bytes / bandwidth
//   lanes     the caller's and, beside it, that of async(); each has a time and ports of its own
//
// Times of different ranks meet in messages only: each carries the time of its departure.
#include <array>
#include <optional>
#include <string>

#include "common/observe/cluster.hpp"
#include "common/observe/events.hpp"
#include "common/observe/work_ledger.hpp"

namespace fivecuts {

/// The lane that the calling thread works on; a communication stream says once that it is `comm`.
Lane lane_of_this_thread();
void this_thread_is(Lane lane);

class Clock {
 public:
  /// Without a cluster it is off, and always says 0.
  explicit Clock(std::optional<Cluster> cluster = {}) : cluster_(std::move(cluster)) {}
  Clock(const Clock&) = delete;

  bool on() const { return cluster_.has_value(); }
  const Cluster& cluster() const { return *cluster_; }
  double now() const { return lane().now; }  ///< seconds on the caller's lane; slots under `unit`
  EventLog& log() { return log_; }

  /// Advances the caller's lane by one operation.
  void compute(const char* name, const Work& work);

  /// While it lives, what the caller's lane computes is one event, `name`. Of spans in one another
  /// the outermost counts. Under `unit` a span costs one slot.
  class [[nodiscard]] Span {
   public:
    ~Span();
    Span(const Span&) = delete;

   private:
    friend class Clock;
    explicit Span(Clock* clock) : clock_(clock) {}
    Clock* clock_;
  };
  Span span(const char* name);

  // --- messages: for the communicator ---
  struct Sent {
    double departs = 0;  ///< when it leaves the outgoing port
    double done = 0;     ///< when all of it has left
  };
  Sent send(std::int64_t bytes, bool inter_node);
  struct Received {
    double starts = 0;  ///< when the incoming port begins to take it
    double done = 0;
  };
  Received receive(double departed, std::int64_t bytes, bool inter_node);
  /// The lane waits until `time` and then goes on; `event` says for what. Its `start`, `end` and
  /// `lane` are set here.
  void wait_until(double time, Event event);
  /// The lane does nothing until `time`.
  void idle_until(double time);

 private:
  struct LaneState {
    double now = 0;
    double out_free = 0, in_free = 0;  // when its ports are free again
    int depth = 0;                     // spans open
    const char* span = nullptr;
    double span_since = 0;  // start of the span's part that is not in the log yet
  };
  LaneState& lane() { return lanes_[static_cast<std::size_t>(lane_of_this_thread())]; }
  const LaneState& lane() const { return lanes_[static_cast<std::size_t>(lane_of_this_thread())]; }
  void close_part(LaneState& lane);

  std::optional<Cluster> cluster_;
  std::array<LaneState, 2> lanes_;  // each is touched by its own thread only
  EventLog log_;
};

}  // namespace fivecuts
