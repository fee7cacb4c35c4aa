#pragma once
// What the checks of this chapter share: numbers keyed by layer, rank and index, shards of them,
// and what a call cost.
#include "ch07_zero/exercise.hpp"

namespace fivecuts::exercise {

/// Layers of awkward sizes: no number of ranks from 2 to 5 divides them all, and one has fewer
/// elements than ranks.
inline const std::vector<std::int64_t> layer_counts = {1430, 368, 1, 1857};

/// Element i of what a rank has of layer k: small whole numbers, none of them 0, so that sums over
/// ranks are exact.
inline double value(int rank, std::size_t k, std::int64_t i) {
  return static_cast<double>(3 * rank + 5 * static_cast<std::int64_t>(k) + i % 7 + 1);
}

inline std::vector<double> of_rank(int rank, std::size_t k, std::int64_t count) {
  std::vector<double> all;
  for (std::int64_t i = 0; i < count; ++i) all.push_back(value(rank, k, i));
  return all;
}

inline std::vector<double> sum_of_ranks(int ranks, std::size_t k, std::int64_t count) {
  std::vector<double> sum(static_cast<std::size_t>(count));
  for (int r = 0; r < ranks; ++r) {
    for (std::int64_t i = 0; i < count; ++i) sum[static_cast<std::size_t>(i)] += value(r, k, i);
  }
  return sum;
}

inline std::vector<double> scaled(std::vector<double> values, double factor) {
  for (double& one : values) one *= factor;
  return values;
}

template <class T>
std::vector<T> part(const std::vector<T>& all, Part p) {
  return {all.begin() + p.first, all.begin() + p.first + p.count};
}

inline Buffer loaded(Context& context, Category category, const std::vector<double>& values) {
  Buffer buffer(context.device, category, 1, static_cast<std::int64_t>(values.size()));
  copy_in(std::vector<float>(values.begin(), values.end()), buffer);
  return buffer;
}

inline std::vector<Tensor> views(const std::vector<Buffer>& buffers) {
  return {buffers.begin(), buffers.end()};
}

/// Work memory for the longest of some buckets, there before a check looks at memory.
inline void make_ready(all_reduce::Workspace& work, Context& context, std::int64_t longest) {
  if (context.size() == 1) return;
  const Buffer like(context.device, Category::workspace, 1, 0);
  work.beside(like, part_of(longest, context.size(), 0).count);
}

/// Elements that the ring sends from rank `r` of `n` for a bucket: all but the chunk it ends with,
/// or but the one that came last.
inline std::int64_t reduce_scatter_elements(std::int64_t count, int n, int r) {
  return count - part_of(count, n, r).count;
}
inline std::int64_t all_gather_elements(std::int64_t count, int n, int r) {
  return n == 1 ? 0 : count - part_of(count, n, (r + n - 1) % n).count;
}

using Used = ExerciseCheck::Used;
/// What `work` takes. Ends the check if it uses the library, or leaves memory behind.
inline Used measured(ExerciseCheck& check, const std::function<void()>& work) {
  const Used used = check.used_by(work);
  check.at_most("held more bytes after the call than before it", used.kept, 0);
  return used;
}

}  // namespace fivecuts::exercise
