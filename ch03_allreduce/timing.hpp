#pragma once
// How long the algorithms take on the clock, over sizes, links and nodes. Rank 0's affair: dry
// worlds inside the run.
#include <optional>

#include "ch03_allreduce/experiments.hpp"

namespace fivecuts::all_reduce {

/// Algorithms of messages over the same sizes.
struct Sweep {
  std::string title;
  std::vector<const NamedAlgorithm*> algorithms;
  std::vector<std::int64_t> bytes;           ///< of the tensor
  std::vector<std::vector<double>> seconds;  ///< [algorithm][size]
  bool by_formula = true;                    ///< the clock says what cost() says

  /// The index of the algorithm that is fastest at a size; the first of equal ones.
  std::size_t fastest(std::size_t size) const;
};
/// `per_node` consecutive ranks share a node, or as many as fit on one of the run's cluster, which
/// may be fewer; 0: all that fit. A cluster that does not say how many fit has them all on one.
Case on_nodes(const Context& run, int ranks, std::int64_t per_node = 0);
/// "4 ranks, one node", "8 nodes of 8 ranks"
std::string layout(const Case& c);
/// All that send messages; hierarchical only where there is something inside nodes and between.
Sweep sweep_sizes(const Context& run, Case c);
/// The same on two halves of the ranks: between them each rank's link carries a tenth of the
/// cluster's.
Sweep sweep_slow_halves(const Context& run, int ranks);

/// Bytes of the tensor from which on `second` is faster than `first`, between 4 bytes and 1 GB:
/// found on the clock, by halving. 0: it always is; nothing: it never is.
struct Crossing {
  const NamedAlgorithm *first, *second;
  std::optional<std::int64_t> bytes;
};
std::vector<Crossing> crossings(const Context& run, int ranks);

constexpr double slow_times = 10;

/// A cluster that does nothing but carry messages: adding is free.
Cluster bare_links(double latency, double bytes_per_second);
/// Two nodes, each with half of the ranks. Between them each rank has a link of its own, which
/// carries a tenth of what the links inside do, in each direction.
DryRun between_slow_halves(const Context& run, Case c, const NamedAlgorithm& algorithm);

/// The parts of a time by themselves, for every algorithm of messages.
struct Terms {
  int ranks = 0;
  struct Row {
    const NamedAlgorithm* algorithm;
    double ports;  ///< latency is free: in times that the whole tensor needs for one link
    double slow;   ///< likewise, between slow halves
    /// The halves share one cable with a tenth: what it needs at least. Not timed, for the clock
    /// knows no sharing: from the bytes that were measured to cross, in the busier direction.
    double cable;
    double latencies;  ///< bandwidth is free: in latencies
  };
  std::vector<Row> rows;
};
Terms terms(const Context& run, int ranks);
std::string terms_table(const std::vector<Terms>& all);

/// Computing takes 1, the gradient's bytes over the bandwidth `wire`: the efficiency of `ranks`
/// ranks, each with the work of one, that end a step with the ring.
double weak_scaling(const Context& run, int ranks, double wire, double latency);

std::string times_table(const Sweep& sweep);
/// Time over size, both logarithmic, a panel for each sweep.
std::string times_svg(const std::vector<Sweep>& sweeps, const std::string& title);

}  // namespace fivecuts::all_reduce
