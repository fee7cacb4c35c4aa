// Which sums of real numbers are the same bit for bit.
#include <algorithm>
#include <set>

#include "ch03_allreduce/experiments.hpp"
#include "ch03_allreduce/numbers.hpp"
#include "common/comm/world.hpp"
#include "common/model/random.hpp"

namespace fivecuts::all_reduce {
namespace {

constexpr int summands = 24;

int distinct(const std::vector<std::uint64_t>& hashes) {
  return static_cast<int>(std::set(hashes.begin(), hashes.end()).size());
}

/// Numbers number `k`. Thirds, so that all bits are in use and nearly every addition rounds.
void fill_real(Tensor x, int k) {
  fill(x, [&](std::int64_t i) { return uniform(5, static_cast<std::uint32_t>(k), 0, i) / 3; });
}

Buffer own_numbers(Context& context, const Setting& s) {
  Buffer x(context.device, Category::gradient, 1, s.elements);
  fill_real(x, context.rank());
  return x;
}

std::uint64_t result_of(Context& context, Communicator& comm, const Setting& s,
                        const NamedAlgorithm& algorithm) {
  Workspace work;
  work.ranks_per_node = static_cast<int>(s.ranks_per_node);
  const Buffer x = own_numbers(context, s);
  algorithm.run(comm, x, Reduction::sum, work);
  return hash(x);
}

/// The ring over `pieces` pieces of the tensor, one after the other: each has chunks of its own.
std::uint64_t in_buckets(Context& context, Communicator& comm, const Setting& s, int pieces) {
  Workspace work;
  const Buffer x = own_numbers(context, s);
  for (int k = 0; k < pieces; ++k) {
    const auto [first, count] = part_of(s.elements, pieces, k);
    ring(comm, x.tensor().part(first, count), Reduction::sum, work);
  }
  return hash(x);
}

/// Every rank adds its own numbers first, then those of the ranks behind it as they come.
std::uint64_t own_order(Context& context, Communicator& comm, const Setting& s) {
  const int n = comm.size(), r = comm.rank();
  const Buffer mine = own_numbers(context, s), sum = own_numbers(context, s),
               theirs = own_numbers(context, s);
  for (int step = 1; step < n; ++step) {
    comm.exchange(to((r + n - step) % n, mine), from((r + step) % n, theirs));
    add(sum, theirs);
  }
  return hash(sum);
}

/// The same summands on `ranks` ranks: each adds up its part of them, and the ring does the rest.
std::uint64_t on_ranks(const Context& run, const Setting& s, int ranks) {
  const auto one_rank = [&](Context& context) {
    const auto [first, count] = part_of(summands, ranks, context.rank());
    const Buffer sum(context.device, Category::gradient, 1, s.elements),
        next(context.device, Category::workspace, 1, s.elements);
    zero(sum);
    for (std::int64_t k = first; k < first + count; ++k) {
      fill_real(next, static_cast<int>(k));
      add(sum, next);
    }
    Workspace work;
    ring(context.world, sum, Reduction::sum, work);
    return hash(sum);
  };
  return world_results<std::uint64_t>(ranks, inner_world(run, Device::Kind::cpu), one_rank).front();
}

}  // namespace

Reproducibility reproduce(Context& context, Communicator& comm, const Setting& s) {
  Reproducibility found;
  std::vector<std::uint64_t> results;
  for (const NamedAlgorithm& one : all_algorithms()) {
    if (one.modelled() || !one.possible(comm)) continue;  // the library promises nothing
    std::vector<std::uint64_t> runs;
    for (int k = 0; k < 2; ++k) {
      const auto of_ranks = comm.gather(result_of(context, comm, s, one));
      found.between_ranks = std::max(found.between_ranks, distinct(of_ranks));
      runs.push_back(of_ranks.front());
    }
    found.between_runs = std::max(found.between_runs, distinct(runs));
    results.push_back(runs.front());
  }
  found.algorithms = static_cast<int>(results.size());
  found.between_algorithms = distinct(results);

  std::vector<std::uint64_t> buckets, worlds;
  for (const int pieces : {1, 2, 3, 4}) {
    buckets.push_back(comm.gather(in_buckets(context, comm, s, pieces)).front());
  }
  found.between_buckets = distinct(buckets);
  found.own_order = distinct(comm.gather(own_order(context, comm, s)));
  if (comm.rank() == 0) {
    for (const int ranks : {1, 2, 3, 4}) worlds.push_back(on_ranks(context, s, ranks));
  }
  found.between_worlds = comm.gather(distinct(worlds)).front();
  return found;
}

}  // namespace fivecuts::all_reduce
