#pragma once
// The notes' figure 7: what a rank holds over one step, by category, and what it does meanwhile.
#include "ch07_zero/worlds.hpp"

namespace fivecuts::zero_redundancy {

/// What happened at a moment, and what the rank holds from then on.
struct Moment {
  double time = 0;   ///< on the clock, from the beginning of the step
  std::string what;  ///< "gather 1", "forward 1", ...; empty: memory came or went, nothing else
  MemoryLedger::Live live{};
  std::int64_t total() const;
};

/// What goes on for a while: a layer is whole, something is computed or sent.
struct Bar {
  std::string row;   ///< "layer 2", "forward", "all-gather"
  std::string what;  ///< "gather–release", "forward 2", "all-gather 2"
  double start = 0, end = 0;
};

struct Figure7 {
  int stage = 0, ranks = 1;
  bool prefetch = true, slots = false;
  double seconds = 0;  ///< of the step
  std::vector<Moment> moments;
  std::vector<Bar> bars;      ///< in the order of their start
  std::int64_t most() const;  ///< bytes at any moment
};
/// Of the first rank's second step in a dry `world`, which has a cluster. A layer's parameters have
/// room from a `gather` to a `release`, its gradient from a `gradient` to `let go`; what is computed
/// and sent has its name from the clock's events, and all of it the number of the layer, from 1.
Figure7 figure7(const World& world);
/// A line for each moment that has a name, with a bar.
std::string figure7_text(const Figure7& figure);
/// The same over time, all moments, and the bars under them.
std::string figure7_svg(const Figure7& figure);

}  // namespace fivecuts::zero_redundancy
