#include "ch03_allreduce/algorithms.hpp"

#include <algorithm>

#include "ch03_allreduce/formulas.hpp"

namespace fivecuts::all_reduce {

std::span<const NamedAlgorithm> all_algorithms() {
  using namespace formulas;
  using By = NamedAlgorithm::By;
  static constexpr NamedAlgorithm all[] = {
      {"gather_broadcast", gather_broadcast, gather_broadcast_traffic, gather_broadcast_seconds},
      {"full_exchange", full_exchange, full_exchange_traffic, full_exchange_seconds},
      {"ring", ring, ring_traffic, ring_seconds},
      {"tree", tree, tree_traffic, tree_seconds},
      {"halving_doubling", halving_doubling, halving_doubling_traffic, halving_doubling_seconds},
      {"hierarchical", hierarchical, hierarchical_traffic, hierarchical_seconds},
      {"shared", shared, shared_traffic, shared_seconds, By::memory},
      {"library", library, ring_traffic, library_seconds, By::library}};
  return all;
}

const NamedAlgorithm& algorithm(const std::string& name) {
  for (const NamedAlgorithm& one : all_algorithms()) {
    if (one.name == name) return one;
  }
  fail(fmt::format("no algorithm is called '{}'", name));
}

double cost(const NamedAlgorithm& algorithm, int ranks, std::int64_t count, DType type,
            const Cluster& cluster) {
  return algorithm.seconds({ranks, count, type, cluster.ranks_per_node}, cluster);
}

AllReduce with_workspace(Algorithm run) {
  return [run, work = std::make_shared<Workspace>()](Communicator& comm, Tensor x) {
    run(comm, x, Reduction::sum, *work);
  };
}

}  // namespace fivecuts::all_reduce
