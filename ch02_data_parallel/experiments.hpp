#pragma once
// The runs behind the chapter's table of rungs and its claims.
#include "ch02_data_parallel/training.hpp"
#include "common/observe/claims.hpp"

namespace fivecuts::data_parallel {

struct NamedRung {
  const char* name;
  Rung rung;
};
/// The ladder, then the rung of beyond/ that is right. `name` is what --rung takes.
std::span<const NamedRung> all_rungs();

/// What a few steps with one rung came to, the same on every rank.
struct RungRow {
  const char* name;
  int distinct_replicas;      ///< -1 on a dry device, which has no weights to compare
  std::int64_t calls;         ///< of the all-reduce, a step
  Verdict gradient;           ///< the mean gradient of the first step against golden's
  std::vector<Traffic> wire;  ///< of each rank, a step
  bool modelled;              ///< `wire` is a ring's, since a library collective did the work
};
/// Collective. Three steps of each rung from the same start on the first global batch.
std::vector<RungRow> climb(Context& context, Communicator& comm, const Digits& digits,
                           const TrainingOptions& options, const AllReduce& all_reduce);

/// Collective. Ranks that start from different seeds, brought together by a broadcast from rank 0.
struct Reunion {
  int distinct_before, distinct_after, changed_ranks;
};
Reunion bring_together(Context& context, Communicator& comm, const TrainingOptions& options);

/// Collective. Why bf16 keeps its weights in f32 too: how many parameters are bit for bit what they
/// were after many small steps in bf16, with these master weights and without.
struct Standstill {
  static constexpr int steps = 100;
  static constexpr float learning_rate = 1e-5f;
  std::int64_t with_master = 0, without = 0;
};
Standstill stand_still(Context& context, Communicator& comm, const Digits& digits,
                       const TrainingOptions& options, const AllReduce& all_reduce);

/// Collective. All claims whose home is this chapter. `trained`: the run's training. On a dry
/// device those that need numbers are left out.
void measure_claims(Context& context, Communicator& comm, const Digits& digits,
                    const TrainingOptions& options, const AllReduce& all_reduce,
                    const TrainingResult& trained, ClaimRows& rows);

}  // namespace fivecuts::data_parallel
