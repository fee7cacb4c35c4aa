// How many bytes each rank sends and receives.
#include <bit>
#include <numeric>

#include "ch03_allreduce/formulas.hpp"

namespace fivecuts::all_reduce::formulas {
namespace {

using std::int64_t;

/// Elements to bytes.
Traffic bytes(const Case& c, int64_t sent, int64_t received, int64_t messages) {
  return {sent * size_of(c.type), received * size_of(c.type), 0, messages};
}

int64_t chunk(int64_t count, int n, int c) { return part_of(count, n, (c + n) % n).count; }

/// Of the ring's phases, on `n` ranks: all chunks but one pass through each rank's ports.
Traffic reduce_scatter_traffic(const Case& c, int n, int r, int64_t count) {
  if (n == 1) return {};
  return bytes(c, count - chunk(count, n, r), count - chunk(count, n, r + 1), n - 1);
}
Traffic all_gather_traffic(const Case& c, int n, int r, int64_t count) {
  if (n == 1) return {};
  return bytes(c, count - chunk(count, n, r - 1), count - chunk(count, n, r), n - 1);
}
Traffic ring_of(const Case& c, int n, int r, int64_t count) {
  Traffic both = reduce_scatter_traffic(c, n, r, count);
  both += all_gather_traffic(c, n, r, count);
  return both;
}

}  // namespace

Traffic gather_broadcast_traffic(const Case& c, int rank) {
  if (c.ranks == 1) return {};
  const int64_t times = rank == 0 ? c.ranks - 1 : 1;
  return bytes(c, times * c.count, times * c.count, times);
}

Traffic full_exchange_traffic(const Case& c, int) {
  const int64_t times = c.ranks - 1;
  return bytes(c, times * c.count, times * c.count, times);
}

Traffic ring_traffic(const Case& c, int rank) { return ring_of(c, c.ranks, rank, c.count); }

/// A tensor up to the parent and down from it, and one from and to each child.
Traffic tree_traffic(const Case& c, int rank) {
  int64_t children = 0;
  for (int distance = 1; rank + distance < c.ranks && (rank == 0 || distance < (rank & -rank));
       distance *= 2) {
    ++children;
  }
  const int64_t times = children + (rank > 0 ? 1 : 0);
  return bytes(c, times * c.count, times * c.count, times);
}

/// Sent on the way down is what the peer keeps, on the way up what this rank has kept.
Traffic halving_doubling_traffic(const Case& c, int rank) {
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(c.ranks)));
  const int folded = c.ranks - power;
  const bool paired = rank < 2 * folded;
  Traffic all;
  if (paired) all += bytes(c, c.count, c.count, 1);
  if (paired && rank % 2 == 1) return all;
  const int me = paired ? rank / 2 : rank - folded;
  int64_t count = c.count;
  for (int distance = power / 2; distance > 0; distance /= 2) {
    const int64_t mine = part_of(count, 2, (me & distance) != 0 ? 1 : 0).count;
    all += bytes(c, count - mine, mine, 1);
    all += bytes(c, mine, count - mine, 1);
    count = mine;
  }
  return all;
}

int ranks_inside(const Case& c) {
  const int n = c.ranks;
  if (c.ranks_per_node == 0 || c.ranks_per_node >= n) return n;
  const int per_node = static_cast<int>(c.ranks_per_node);
  return std::gcd(per_node, n % per_node);
}

Traffic hierarchical_traffic(const Case& c, int rank) {
  const int inside = ranks_inside(c), place = rank % inside;
  Traffic all = reduce_scatter_traffic(c, inside, place, c.count);
  all += ring_of(c, c.ranks / inside, rank / inside, chunk(c.count, inside, place));
  all += all_gather_traffic(c, inside, place, c.count);
  return all;
}

/// Its chunk from each of the others, and to each of them. No message.
Traffic shared_traffic(const Case& c, int rank) {
  const int64_t others = (c.ranks - 1) * chunk(c.count, c.ranks, rank);
  return bytes(c, others, others, 0);
}

}  // namespace fivecuts::all_reduce::formulas
