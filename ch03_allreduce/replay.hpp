#pragma once
// The time of an all-reduce where no closed form has it: nodes with other links between them than
// inside, a number of ranks that is no power of two, chunks that differ. Goes through the messages
// as the algorithm sends them and moves the ports on as docs/clock.md says; no rank, no tensor.
#include <vector>

#include "ch03_allreduce/algorithms.hpp"

namespace fivecuts::all_reduce::formulas {

/// Seconds that arithmetic takes on the clock.
double operation_seconds(const Cluster& cluster, double flops, double bytes);

/// The time of each rank, and when its two ports are free again.
class Replay {
 public:
  Replay(const Case& c, const Cluster& cluster);
  /// Leaves when its sender has come to it and that one's port is free, and takes the receiver's
  /// port for as long. Messages to one rank must be given in the order in which it receives them.
  void message(int from, int to, std::int64_t count);
  /// Every rank waits for what it has begun to send and receive.
  void wait();
  void add(int rank, std::int64_t count);
  void copy(int rank, std::int64_t count);
  /// When the last rank has ended.
  double end() const;

 private:
  struct Rank {
    double now = 0, out_free = 0, in_free = 0, busy_until = 0;
  };
  Rank& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  double bytes(std::int64_t count) const {
    return static_cast<double>(count * size_of(case_.type));
  }

  const Case& case_;
  const Cluster& cluster_;
  std::vector<Rank> ranks_;
};

double gather_broadcast_replayed(const Case&, const Cluster&);
double full_exchange_replayed(const Case&, const Cluster&);
double ring_replayed(const Case&, const Cluster&);
double tree_replayed(const Case&, const Cluster&);
double halving_doubling_replayed(const Case&, const Cluster&);
double hierarchical_replayed(const Case&, const Cluster&);

}  // namespace fivecuts::all_reduce::formulas
