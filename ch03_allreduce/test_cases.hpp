#pragma once
// What the tests of this chapter share: numbers that tell rank and index, compared with ==.
#include "ch03_allreduce/algorithms.hpp"
#include "ch03_allreduce/numbers.hpp"
#include "common/comm/context.hpp"
#include "common/support/test_main.hpp"

namespace fivecuts::all_reduce {

/// What `rank` puts at `index`: a shifted, swapped or repeated piece gives other numbers. Sums over
/// 8 ranks are exact, in bf16 too, which holds whole numbers up to 256.
inline std::int64_t value(int rank, std::int64_t index, DType type) {
  return index % (type == DType::bf16 ? 3 : 1009) * 8 + rank + 1;
}
/// Their sum over the ranks that `members` names.
inline std::int64_t sum_of(const std::vector<int>& members, std::int64_t index, DType type) {
  std::int64_t sum = 0;
  for (const int rank : members) sum += value(rank, index, type);
  return sum;
}
inline std::vector<int> all_ranks(int n) {
  std::vector<int> all;
  for (int r = 0; r < n; ++r) all.push_back(r);
  return all;
}

/// x holds f(index) everywhere.
template <class F>
testing::AssertionResult holds(Tensor x, const F& f) {
  const std::vector<double> got = numbers(x);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto want = static_cast<double>(f(static_cast<std::int64_t>(i)));
    if (got[i] == want) continue;
    return testing::AssertionFailure()
           << "element " << i << " of " << got.size() << " is " << got[i] << ", not " << want;
  }
  return testing::AssertionSuccess();
}

inline Buffer of_rank(Context& context, DType type, std::int64_t count, int rank) {
  Buffer x(context.device, Category::gradient, 1, count, type);
  fill(x, [&](std::int64_t i) { return value(rank, i, type); });
  return x;
}

inline std::vector<std::int64_t> awkward_counts(int n) {
  return {0, 1, n - 1, n, n + 1, 1000, 1857};
}

/// An algorithm as the tests run it.
struct Tried {
  const NamedAlgorithm* algorithm;
  int ranks_per_node = 0;
  std::string name() const {
    return algorithm->name +
           (ranks_per_node > 0 ? fmt::format("_nodes_of_{}", ranks_per_node) : std::string());
  }
  Workspace workspace() const {
    Workspace work;
    work.ranks_per_node = ranks_per_node;
    return work;
  }
};
/// All algorithms; and `hierarchical` again on nodes smaller than the machine, since on one node it
/// reduces nothing across.
inline std::vector<Tried> all_tried() {
  std::vector<Tried> all;
  for (const NamedAlgorithm& one : all_algorithms()) all.push_back({&one});
  all.push_back({&algorithm("hierarchical"), 2});
  return all;
}

}  // namespace fivecuts::all_reduce
