#pragma once
// What the program prints and draws.
#include <optional>

#include "ch02_data_parallel/timing.hpp"
#include "common/observe/output_file.hpp"

namespace fivecuts::data_parallel {

std::string ladder_table(const std::vector<RungRow>& ladder);
/// All rungs but `none`, which is there to show what goes wrong, end with golden's gradient and one
/// replica.
bool sums_are_golden(const std::vector<RungRow>& ladder);

/// What the run's clock says of a step: of this model, dry, on the run's cluster.
struct Times {
  DryModel model;
  int ranks = 0;
  std::vector<TimedStep> steps;  ///< each way to take a step, on `ranks` ranks
  std::vector<Scaling> scaling;
  std::vector<Timeline> timelines() const;
};
/// Collective; rank 0 alone holds it. The model is the run's own where the run is dry, and else
/// four layers of 10,000 x 10,000 with 512 rows a rank.
Times time_steps(const Context& context, const TrainingOptions& options,
                 const AllReduce& all_reduce);
std::string scaling_table(const Times& times);
/// The notes' figure 2 as SVG: all ways to take a step.
std::string figure(const Times& times, const std::string& cluster);
/// Rank 0 prints the table and two timelines, and writes the files that there are.
void show_times(const Context& context, const Times& times,
                const std::optional<OutputFile>& figure_file,
                const std::optional<OutputFile>& trace_file);

/// Collective. Prints what bf16 does without master weights.
void show_standstill(Context& context, Communicator& dp, const Digits& digits,
                     const TrainingOptions& options);

/// Collective. Trains and prints each epoch; true if the weights and losses followed golden's.
bool training_follows_golden(Context& context, Communicator& dp, const Digits& digits,
                             const TrainingOptions& options, TrainingResult& result);

}  // namespace fivecuts::data_parallel
