#pragma once
// A cluster as the clock sees it: how fast a rank computes, and how fast its messages are. Read
// from a JSON file in which each number names its source.
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace fivecuts {

/// A message of b bytes takes latency + b / bandwidth (the alpha-beta model: Hockney 1994).
struct Link {
  double latency = 0;                                          ///< seconds
  double bandwidth = std::numeric_limits<double>::infinity();  ///< bytes per second, each way
};

struct Cluster {
  std::string name;
  double peak_f32 = 0, peak_bf16 = 0;  ///< FLOP/s of one rank's device
  double memory_bandwidth = 0;         ///< of its memory, bytes per second
  double overhead = 0;                 ///< seconds that each operation costs beside its work
  std::int64_t memory = 0;             ///< bytes of its memory
  std::int64_t ranks_per_node = 0;     ///< 0: nodes are those that the ranks really run on
  Link intra_node, inter_node;
  /// (smallest dimension of a matrix product, share of the peak that it reaches), ascending.
  std::vector<std::pair<double, double>> product_efficiency;
  /// Time is counted in slots: a named span costs one, everything else nothing.
  bool unit = false;

  const Link& link(bool inter) const { return inter ? inter_node : intra_node; }
  /// Between two points of the curve on a straight line, beyond its ends as at them.
  double efficiency(std::int64_t thinnest) const;
};

/// `name`: one of cluster_names(), or a file. Throws UsageError with the file's name and what is
/// wrong in it.
Cluster load_cluster(const std::string& name);
std::vector<std::string> cluster_names();

}  // namespace fivecuts
