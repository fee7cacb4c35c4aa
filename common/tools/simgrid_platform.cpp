// A cluster profile as a platform of SimGrid: hosts around one switch, each with a port out and a
// port in.
//
//   simgrid_platform CLUSTER RANKS       the XML, on the standard output
//
// A message passes the sender's link and the receiver's, and SimGrid adds their latencies: each has
// half.
#include <cstdlib>

#include "common/observe/cluster.hpp"
#include "common/support/error.hpp"

namespace fivecuts {
namespace {

/// The link between any two of `ranks` ranks in a run with --world, where the real node is one.
const Link& only_link(const Cluster& cluster, std::int64_t ranks) {
  const std::int64_t per_node = cluster.ranks_per_node;
  if (per_node == 0 || per_node >= ranks) return cluster.intra_node;
  if (per_node == 1) return cluster.inter_node;
  throw UsageError(fmt::format(
      "{} ranks of '{}' are several nodes of {}, which is no single switch; try {} ranks", ranks,
      cluster.name, per_node, per_node));
}

void print_platform(const Link& link, std::int64_t ranks) {
  fmt::print(R"(<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="switch" prefix="host" suffix="" radical="0-{}" speed="1Gf"
           bw="{}Bps" lat="{}s" sharing_policy="SPLITDUPLEX"/>
</platform>
)",
             ranks - 1, link.bandwidth, link.latency / 2);
}

}  // namespace
}  // namespace fivecuts

int main(int argc, char** argv) {
  using namespace fivecuts;
  try {
    const std::int64_t ranks = argc == 3 ? std::atoll(argv[2]) : 0;
    if (ranks < 1) throw UsageError("it takes a cluster and a number of ranks, as in: slow 16");
    const Cluster cluster = load_cluster(argv[1]);
    if (cluster.unit) throw UsageError("a cluster that counts slots has no links");
    print_platform(only_link(cluster, ranks), ranks);
    return exit_ok;
  } catch (const std::exception& error) {
    fmt::print(stderr, "simgrid_platform: {}\n", error.what());
    return exit_usage;
  }
}
