#pragma once
// The notes' figure 7: what a rank holds over one step, by category, and what it does meanwhile.
#include "ch07_zero/worlds.hpp"

namespace fivecuts::zero_redundancy {

/// What happened at a moment, and what the rank holds from then on.
struct Moment {
  double time = 0;   ///< on the clock, from the beginning of the step
  std::string what;  ///< "gather", "forward", ...; empty: memory came or went, and nothing else
  MemoryLedger::Live live{};
};

struct Figure7 {
  int stage = 0, ranks = 1;
  bool prefetch = true, slots = false;
  double seconds = 0;  ///< of the step
  std::vector<Moment> moments;
};
/// Of the first rank's second step in a dry `world`, which has a cluster. A layer's parameters that
/// come are a `gather` and go by a `release`; a gradient's are a `gradient` and `let go`; what is
/// computed and sent has its name from the clock's events.
Figure7 figure7(const World& world);
/// A line for each moment that has a name, with a bar.
std::string figure7_text(const Figure7& figure);
/// The same over time, and all moments.
std::string figure7_svg(const Figure7& figure);

}  // namespace fivecuts::zero_redundancy
