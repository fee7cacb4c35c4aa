// How long each algorithm takes on the clock. All ranks start at once; alpha is a message's
// latency, d(c) the time in which c elements cross a link, a(c) that of adding them. Where no
// formula has it, since nodes or chunks differ, the messages are gone through one by one
// (replay.hpp).
#include <algorithm>
#include <bit>

#include "ch03_allreduce/formulas.hpp"
#include "ch03_allreduce/replay.hpp"

namespace fivecuts::all_reduce::formulas {
namespace {

using std::int64_t;

/// The times of one case.
struct Prices {
  const Case& c;
  const Cluster& cluster;

  bool several_nodes() const { return c.ranks_per_node > 0 && c.ranks_per_node < c.ranks; }
  bool full_nodes() const { return !several_nodes() || c.ranks % c.ranks_per_node == 0; }
  /// Every rank is a node, or all are one: all messages take the same link.
  bool one_link() const { return !several_nodes() || c.ranks_per_node == 1; }
  const Link& slowest() const { return cluster.link(several_nodes()); }
  double bytes(int64_t count) const { return static_cast<double>(count * size_of(c.type)); }

  double cross(const Link& link, int64_t count) const { return bytes(count) / link.bandwidth; }
  double hop(const Link& link, int64_t count) const { return link.latency + cross(link, count); }
  double add(int64_t count) const {
    return operation_seconds(cluster, static_cast<double>(count), 3 * bytes(count));
  }
  double copy(int64_t count) const { return operation_seconds(cluster, 0, 2 * bytes(count)); }
};

/// Both phases of a ring on one kind of link. The longest chunk, chunk 0, goes all the way.
double ring_on(const Prices& p, const Link& link, int n, int64_t count) {
  const int64_t chunk = part_of(count, n, 0).count;
  return (n - 1) * (2 * p.hop(link, chunk) + p.add(chunk));
}

}  // namespace

/// N-1 messages come in back to back, and each is added while the next one comes; or adding takes
/// longer and they queue before it. Then N-1 go out.
double gather_broadcast_seconds(const Case& c, const Cluster& cluster) {
  if (c.ranks == 1) return 0;
  const Prices p{c, cluster};
  if (!p.one_link()) return gather_broadcast_replayed(c, cluster);
  const double cross = p.cross(p.slowest(), c.count), add = p.add(c.count);
  const double in = cross + (c.ranks - 2) * std::max(cross, add) + add;
  return 2 * p.slowest().latency + in + (c.ranks - 1) * cross;
}

double full_exchange_seconds(const Case& c, const Cluster& cluster) {
  if (c.ranks == 1) return 0;
  const Prices p{c, cluster};
  if (!p.one_link()) return full_exchange_replayed(c, cluster);
  const double in = p.slowest().latency + (c.ranks - 1) * p.cross(p.slowest(), c.count);
  return in + (c.ranks - 1) * p.add(c.count) + p.copy(c.count);
}

/// On several full nodes of m ranks one link in m is slow. A chain of events moves to the left with
/// a chunk (its latency counts), or stays at a rank while that rank's port is busy with it (no
/// latency). The longest chain passes either as many slow links as it can, or one, and spends the
/// rest at the port before it; between these two it is linear.
double ring_seconds(const Case& c, const Cluster& cluster) {
  const Prices p{c, cluster};
  if (p.one_link()) return ring_on(p, p.slowest(), c.ranks, c.count);
  if (!p.full_nodes() || c.count % c.ranks != 0) return ring_replayed(c, cluster);
  const int64_t chunk = part_of(c.count, c.ranks, 0).count;
  const int m = static_cast<int>(c.ranks_per_node), steps = 2 * (c.ranks - 1);
  const double slow = p.hop(cluster.inter_node, chunk), fast = p.hop(cluster.intra_node, chunk);
  const double rest = std::max(fast, p.cross(cluster.inter_node, chunk));
  const auto chain = [&](int passed) {
    const int between = (passed - 1) * (m - 1);
    return passed * slow + between * fast + (steps - passed - between) * rest;
  };
  return std::max(chain(1), chain((steps + m - 1) / m)) + (c.ranks - 1) * p.add(chunk);
}

namespace {

/// Steps of an algorithm that doubles or halves something in each.
int log2_of(int ranks) { return std::bit_width(static_cast<unsigned>(ranks)) - 1; }
bool is_power_of_two(int ranks) { return std::has_single_bit(static_cast<unsigned>(ranks)); }

}  // namespace

/// No port is busy with two messages at a time: log2 N (2 alpha + 2 d + a).
double tree_seconds(const Case& c, const Cluster& cluster) {
  const Prices p{c, cluster};
  if (!p.one_link() || !is_power_of_two(c.ranks)) return tree_replayed(c, cluster);
  return log2_of(c.ranks) * (2 * p.hop(p.slowest(), c.count) + p.add(c.count));
}

double halving_doubling_seconds(const Case& c, const Cluster& cluster) {
  const Prices p{c, cluster};
  if (!p.one_link() || !is_power_of_two(c.ranks)) return halving_doubling_replayed(c, cluster);
  double time = 0;
  int64_t count = c.count;
  for (int step = 0; step < log2_of(c.ranks); ++step) {
    count = part_of(count, 2, 0).count;
    time += 2 * p.hop(p.slowest(), count) + p.add(count);
  }
  return time;
}

double hierarchical_seconds(const Case& c, const Cluster& cluster) {
  const Prices p{c, cluster};
  if (!p.full_nodes()) return hierarchical_replayed(c, cluster);
  const int inside = ranks_inside(c);
  const int64_t chunk = part_of(c.count, inside, 0).count;
  return ring_on(p, cluster.intra_node, inside, c.count) +
         ring_on(p, cluster.inter_node, c.ranks / inside, chunk);
}

/// Into the memory that is shared and out of it, and two meetings; in between the longest chunk is
/// read from all others, added up in one pass, and written to them.
double shared_seconds(const Case& c, const Cluster& cluster) {
  if (c.ranks == 1 || c.count == 0) return 0;
  const Prices p{c, cluster};
  const int64_t chunk = part_of(c.count, c.ranks, 0).count, others = (c.ranks - 1) * chunk;
  const double all =
      operation_seconds(cluster, static_cast<double>(others), 2 * p.bytes(c.ranks * chunk));
  return 2 * p.copy(c.count) + 2 * p.hop(cluster.intra_node, others) + all;
}

double library_seconds(const Case& c, const Cluster& cluster) {
  const Prices p{c, cluster};
  return 2 * (c.ranks - 1) * p.hop(p.slowest(), part_of(c.count, c.ranks, 0).count);
}

}  // namespace fivecuts::all_reduce::formulas
