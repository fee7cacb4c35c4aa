#pragma once
// What the two parts of the benchmark share.
#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include "common/comm/context.hpp"

namespace fivecuts::all_reduce {

/// Seconds that one of `times` calls takes, on this rank, where all begin together.
inline double time_of(const Communicator& comm, int warm, int times,
                      const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  for (int k = 0; k < warm; ++k) call();
  comm.barrier();
  const auto start = Clock::now();
  for (int k = 0; k < times; ++k) call();
  return std::chrono::duration<double>(Clock::now() - start).count() / times;
}

inline double median(std::vector<double> of) {
  const auto middle = of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2);
  std::nth_element(of.begin(), middle, of.end());
  return *middle;
}

/// ch02's training step with this chapter's all-reduces, a line for each.
void time_training(Context& context, int rounds);

}  // namespace fivecuts::all_reduce
