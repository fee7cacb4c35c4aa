#pragma once
// What the checks of this chapter share: numbers keyed by rank and index, and what a call cost.
#include "ch03_allreduce/exercise.hpp"

namespace fivecuts::exercise {

inline double value(int rank, std::int64_t i) {
  return static_cast<double>((rank + 1) * 100 + i % 97);
}

inline std::vector<double> of_rank(int rank, std::int64_t count) {
  std::vector<double> all;
  for (std::int64_t i = 0; i < count; ++i) all.push_back(value(rank, i));
  return all;
}

inline std::vector<double> sum_of_ranks(int ranks, std::int64_t count) {
  std::vector<double> sum(static_cast<std::size_t>(count));
  for (int r = 0; r < ranks; ++r) {
    for (std::int64_t i = 0; i < count; ++i) sum[static_cast<std::size_t>(i)] += value(r, i);
  }
  return sum;
}

inline Buffer loaded(Context& context, const std::vector<double>& values) {
  Buffer buffer(context.device, Category::gradient, 1, static_cast<std::int64_t>(values.size()));
  copy_in(std::vector<float>(values.begin(), values.end()), buffer);
  return buffer;
}

/// No sum holds this.
inline Buffer blank(Context& context, std::int64_t count) {
  return loaded(context, std::vector<double>(static_cast<std::size_t>(count), -1));
}

inline std::vector<float> part(const std::vector<float>& all, Part p) {
  return {all.begin() + p.first, all.begin() + p.first + p.count};
}
inline std::vector<double> part(const std::vector<double>& all, Part p) {
  return {all.begin() + p.first, all.begin() + p.first + p.count};
}

/// What `work` puts on this rank's wires under a communicator's name ("": all). Ends the check if
/// it allocates, or uses the library.
template <class F>
Traffic measured(ExerciseCheck& check, const F& work) {
  const ExerciseCheck::Used used = check.used_by(work);
  check.at_most("allocated bytes", used.allocated, 0);
  return used.sent;
}

}  // namespace fivecuts::exercise
