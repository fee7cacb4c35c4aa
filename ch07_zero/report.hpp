#pragma once
// What the program prints.
#include "ch07_zero/live_memory.hpp"
#include "ch07_zero/training_files.hpp"

namespace fivecuts::zero_redundancy {

/// Collective. Trains and prints each epoch, and what was resumed, saved and exported; true if
/// weights and losses followed golden's.
bool training_follows_golden(Context& context, Communicator& dp, const Digits& digits,
                             const Setting& setting, const TrainingFiles& files,
                             TrainingResult& result);

/// Of a step at each stage: memory of the fullest rank, bytes and messages of all, and the state
/// that the training came to.
std::string stage_table(const std::vector<StageRow>& rows);

/// How many different states the table should have.
std::string states_text(const Setting& setting);

/// Rank 0 prints what reading a weight outside its layer's pass comes to; false if it is not what
/// the stage says.
bool show_what_leaks(const Context& context, int stage);

/// Rank 0 prints what goes over the wire, what fits, and how long a step takes, in dry worlds.
void show_worlds_of(const Context& context, const Setting& setting);

/// Rank 0 prints what beyond/ makes of it; true if all of it trains to the same.
bool show_beyond(const Context& context, const Digits& digits);

/// The dry world of figure 7: the run's stage and, where it has 2 to 16, its ranks.
World step_of_figure7(const Context& context, const Setting& setting);

}  // namespace fivecuts::zero_redundancy
