#pragma once
// How long a step takes, on the clock of a virtual cluster: dry worlds of any number of ranks,
// inside the run.
#include "ch02_data_parallel/experiments.hpp"
#include "common/comm/world.hpp"
#include "common/observe/timeline_svg.hpp"

namespace fivecuts::data_parallel {

/// Ways to take a step: the rungs, and the one that overlaps.
struct NamedStep {
  std::string name;
  std::function<void(Replica&, const Shard&, Communicator&)> step;
};
std::vector<NamedStep> all_steps(const AllReduce& all_reduce);
NamedStep step_of(const std::string& name, const AllReduce& all_reduce);

/// What each rank of a dry world works on: the whole model, and `rows` rows of its own.
struct DryModel {
  ModelShape shape;
  std::int64_t rows = 0;
  DType precision = DType::f32;
};

struct TimedStep {
  double seconds = 0;  ///< until the last rank has ended it
  Timeline timeline;   ///< of all ranks, from the step's beginning
};
TimedStep time_step(const NamedStep& step, const DryModel& model, int ranks,
                    const Cluster& cluster);

/// Steps of 1 and more ranks, each rank with as many rows as ever: weak scaling.
struct Scaling {
  std::string name;
  double alone = 0;                                  ///< seconds of one rank
  std::vector<std::pair<int, double>> efficiencies;  ///< (ranks, alone / seconds)
};
inline constexpr int scaling_ranks[] = {2, 4, 8, 64};
Scaling weak_scaling(const NamedStep& step, const DryModel& model, const Cluster& cluster);

/// The notes' numbers: N = 3, computing takes 1, and the gradient's bytes over the bandwidth 0.1.
/// Seconds of one rank, of three, and of three with overlap.
struct NotesTimes {
  double alone = 0, together = 0, overlapped = 0;
};
NotesTimes notes_times(const AllReduce& all_reduce);

}  // namespace fivecuts::data_parallel
