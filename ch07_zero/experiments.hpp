#pragma once
// The runs behind the chapter's tables, its figures and its claims.
#include <array>
#include <optional>

#include "ch07_zero/training.hpp"
#include "common/observe/claims.hpp"

namespace fivecuts::zero_redundancy {

/// Bytes of one rank by what they are, as its ledger says.
struct Bytes {
  std::int64_t parameter = 0, gradient = 0, optimizer = 0, activation = 0;
  std::int64_t total = 0;  ///< of everything; at the peak not the sum of the peaks
  std::int64_t state() const { return parameter + gradient + optimizer; }
};

/// What one rank's step takes.
struct StepCost {
  Bytes at_rest;       ///< between steps
  Bytes peak;          ///< in a step
  Traffic sent;        ///< in a step
  double seconds = 0;  ///< of the clock
  double flops = 0;
};
/// Collective. A step of `model` on `rows` rows of zeros, this rank's; not the first one, which
/// also makes its work memory. A dry device takes it too.
StepCost step_cost(Context& context, Communicator& comm, const ModelShape& model, std::int64_t rows,
                   const Settings& settings, std::int64_t micro_batches = 1,
                   const Make& make = make_trainer<>);

/// The same training at one stage, and what a step of it takes.
struct StageRow {
  int stage = 0;
  std::vector<StepCost> ranks{};  ///< of each rank
  std::uint64_t hash = 0;  ///< of weights, moments and steps at the end; 0 where nothing is trained
  int replicas = 0;
  Verdict weights{};  ///< against golden's at the end
};
/// Collective. All stages, as `setting` says but for the stage; where memory is capped its own
/// stage alone. `golden`: its weights at the end.
std::vector<StageRow> climb(Context& context, Communicator& comm, const Digits& digits,
                            Setting setting, const std::vector<double>& golden);

/// Bit for bit one state at the end of all stages, and `trained` at the setting's own; with several
/// micro-batches one of stages 0 and 1, and one of 2 and 3, which add in another order. And
/// golden's weights at each. No `trained`: of a run whose first steps other ranks may have done.
bool stages_agree(const std::vector<StageRow>& rows, const Setting& setting,
                  std::optional<std::uint64_t> trained);

}  // namespace fivecuts::zero_redundancy
