#pragma once
// The deadlock lab: typical mistakes, each with what the guard says of it.
#include <span>

#include "ch03_allreduce/experiments.hpp"

namespace fivecuts::all_reduce {

struct Demo {
  const char* name;
  const char* about;  ///< what the ranks do
  /// Returns only if nobody waits for ever; then how many numbers are wrong, of all ranks, and says
  /// what it found.
  std::int64_t (*run)(Context&, std::int64_t elements);
};
std::span<const Demo> all_demos();

/// Collective. Says what is about to happen and does it. Returns only if it went to its end, which
/// a mistake may: true if all sums are right.
bool show(const Demo& demo, Context& context, std::int64_t elements);

}  // namespace fivecuts::all_reduce
