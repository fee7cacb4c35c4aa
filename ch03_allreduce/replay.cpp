#include "ch03_allreduce/replay.hpp"

#include <algorithm>
#include <bit>

#include "ch03_allreduce/formulas.hpp"

namespace fivecuts::all_reduce::formulas {

using std::int64_t;

double operation_seconds(const Cluster& cluster, double flops, double bytes) {
  if (cluster.unit) return 0;
  return std::max(flops / cluster.peak_f32, bytes / cluster.memory_bandwidth) + cluster.overhead;
}

Replay::Replay(const Case& c, const Cluster& cluster)
    : case_(c), cluster_(cluster), ranks_(static_cast<std::size_t>(c.ranks)) {}

void Replay::message(int from, int to, int64_t count) {
  const int64_t per_node = case_.ranks_per_node;
  const Link& link = cluster_.link(per_node > 0 && from / per_node != to / per_node);
  Rank &sender = at(from), &receiver = at(to);
  const double cross = bytes(count) / link.bandwidth;
  const double departs = std::max(sender.now, sender.out_free);
  sender.out_free = departs + cross;
  receiver.in_free = std::max(departs + link.latency, receiver.in_free) + cross;
  sender.busy_until = std::max(sender.busy_until, sender.out_free);
  receiver.busy_until = std::max(receiver.busy_until, receiver.in_free);
}

void Replay::wait() {
  for (Rank& rank : ranks_) rank.now = std::max(rank.now, rank.busy_until);
}

void Replay::add(int rank, int64_t count) {
  at(rank).now += operation_seconds(cluster_, static_cast<double>(count), 3 * bytes(count));
}

void Replay::copy(int rank, int64_t count) {
  at(rank).now += operation_seconds(cluster_, 0, 2 * bytes(count));
}

double Replay::end() const { return std::ranges::max_element(ranks_, {}, &Rank::now)->now; }

double gather_broadcast_replayed(const Case& c, const Cluster& cluster) {
  Replay replay(c, cluster);
  for (int r = 1; r < c.ranks; ++r) {
    replay.message(r, 0, c.count);
    replay.wait();
    replay.add(0, c.count);
  }
  for (int r = 1; r < c.ranks; ++r) replay.message(0, r, c.count);
  replay.wait();
  return replay.end();
}

double full_exchange_replayed(const Case& c, const Cluster& cluster) {
  Replay replay(c, cluster);
  const int n = c.ranks;
  for (int step = 1; step < n; ++step) {
    for (int r = 0; r < n; ++r) replay.message(r, (r + n - step) % n, c.count);
  }
  replay.wait();
  for (int r = 0; r < n; ++r) {
    for (int k = 1; k < n; ++k) replay.add(r, c.count);
    if (r > 0) replay.copy(r, c.count);
  }
  return replay.end();
}

namespace {

/// The ring's phases on some of the ranks.
struct RingOf {
  Replay& replay;
  std::vector<int> ranks;
  int64_t count;

  int n() const { return static_cast<int>(ranks.size()); }
  int rank(int place) const { return ranks[static_cast<std::size_t>(place % n())]; }
  int64_t chunk(int c) const { return part_of(count, n(), c % n()).count; }
  /// To the left: rank `place` sends chunk place + first.
  void step(int first) const {
    for (int p = 0; p < n(); ++p) replay.message(rank(p), rank(p + n() - 1), chunk(p + first));
    replay.wait();
  }
  void reduce_scatter() const {
    for (int s = 1; s < n(); ++s) {
      step(s);
      for (int p = 0; p < n(); ++p) replay.add(rank(p), chunk(p + s + 1));
    }
  }
  void all_gather() const {
    for (int s = 1; s < n(); ++s) step(s - 1);
  }
};

/// first, first + stride, ... below `end`
std::vector<int> every(int first, int stride, int end) {
  std::vector<int> ranks;
  for (int r = first; r < end; r += stride) ranks.push_back(r);
  return ranks;
}

}  // namespace

double ring_replayed(const Case& c, const Cluster& cluster) {
  Replay replay(c, cluster);
  const RingOf ring{replay, every(0, 1, c.ranks), c.count};
  ring.reduce_scatter();
  ring.all_gather();
  return replay.end();
}

double tree_replayed(const Case& c, const Cluster& cluster) {
  Replay replay(c, cluster);
  for (int distance = 1; distance < c.ranks; distance *= 2) {
    const std::vector<int> parents = every(0, 2 * distance, c.ranks - distance);
    for (const int r : parents) replay.message(r + distance, r, c.count);
    replay.wait();
    for (const int r : parents) replay.add(r, c.count);
  }
  for (int distance = static_cast<int>(std::bit_ceil(static_cast<unsigned>(c.ranks))) / 2;
       distance > 0; distance /= 2) {
    for (const int r : every(0, 2 * distance, c.ranks - distance)) {
      replay.message(r, r + distance, c.count);
    }
    replay.wait();
  }
  return replay.end();
}

double halving_doubling_replayed(const Case& c, const Cluster& cluster) {
  Replay replay(c, cluster);
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(c.ranks)));
  const int folded = c.ranks - power;
  const auto rank_of = [&](int k) { return k < folded ? 2 * k : k + folded; };
  for (int k = 0; k < folded; ++k) replay.message(2 * k + 1, 2 * k, c.count);
  replay.wait();
  for (int k = 0; k < folded; ++k) replay.add(2 * k, c.count);
  // What each of those that take part has kept on its way down, after every step.
  std::vector<std::vector<int64_t>> kept = {
      std::vector<int64_t>(static_cast<std::size_t>(power), c.count)};
  for (int distance = power / 2; distance > 0; distance /= 2) {
    std::vector<int64_t> halves;
    for (int k = 0; k < power; ++k) {
      const int64_t whole = kept.back()[static_cast<std::size_t>(k)];
      halves.push_back(part_of(whole, 2, (k & distance) != 0 ? 1 : 0).count);
      replay.message(rank_of(k), rank_of(k ^ distance), whole - halves.back());
    }
    replay.wait();
    for (int k = 0; k < power; ++k) replay.add(rank_of(k), halves[static_cast<std::size_t>(k)]);
    kept.push_back(std::move(halves));
  }
  for (int distance = 1; distance < power; distance *= 2) {
    for (int k = 0; k < power; ++k) {
      replay.message(rank_of(k), rank_of(k ^ distance), kept.back()[static_cast<std::size_t>(k)]);
    }
    replay.wait();
    kept.pop_back();
  }
  for (int k = 0; k < folded; ++k) replay.message(2 * k, 2 * k + 1, c.count);
  replay.wait();
  return replay.end();
}

double hierarchical_replayed(const Case& c, const Cluster& cluster) {
  Replay replay(c, cluster);
  const int members = ranks_inside(c);
  std::vector<RingOf> inside, across;
  for (int first = 0; first < c.ranks; first += members) {
    inside.push_back({replay, every(first, 1, first + members), c.count});
  }
  for (int place = 0; place < members; ++place) {
    across.push_back(
        {replay, every(place, members, c.ranks), part_of(c.count, members, place).count});
  }
  for (const RingOf& node : inside) node.reduce_scatter();
  for (const RingOf& ring : across) {
    ring.reduce_scatter();
    ring.all_gather();
  }
  for (const RingOf& node : inside) node.all_gather();
  return replay.end();
}

}  // namespace fivecuts::all_reduce::formulas
