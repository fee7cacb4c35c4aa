#pragma once
// The memory account: what one parameter costs in training, and what comes on top for each row of
// the batch (the notes' cards of section 01).
//
//                   parameter  gradient  | optimizer state: copy, m, v  |  together
//   bf16                2          2     |        4         4    4      |     16     the notes'
//   fp32_gradients      2          4     |        4         4    4      |     18     Megatron-LM's
//   fp32                4          4     |        -         4    4      |     16     ch02's
//
// Bytes, whatever is computed on how many rows. The copy is the weights again, in 32 bits: an
// update is mostly smaller than the last of bf16's 8 bits, so it would be lost there.
//
// Invariant: model state does not depend on the batch, activations are proportional to it:
//
//    bytes |              ____ activations: z and y of each layer, for each row
//          |        _____/
//     12 Psi ------X---------- optimizer state
//          |  ____/            they meet at the batch that batch_that_passes finds
//          +------------------ rows of the batch
//
// Every number comes from the ledger of a device that holds the buffers: a real one (cpu), or a dry
// one (meta), which has room for any model. No 16 stands in this code.
#include <span>

#include "ch01_overview/placement.hpp"
#include "common/model/adam.hpp"

namespace fivecuts::overview {

/// A convention for the types of the state; Adam's copy of the weights exists where `parameter` is
/// not f32. Activations have the parameters' type.
struct Recipe {
  const char* name;
  DType parameter, gradient;
};
std::span<const Recipe> all_recipes();

/// The model state of one rank, as one flat bucket of each kind for each holding. The order is that
/// of a framework: parameters when the model is built, gradients in the first backward pass,
/// optimizer state in the first update; so a card that is too small fails where it does there.
/// All zeros; throws OutOfMemory over the device's cap.
struct ModelState {
  ModelState(Device& device, const Placement& placement, const Recipe& recipe);
  std::vector<Buffer> parameters, gradients;
  std::vector<AdamState> optimizer;
};

/// Forward, backward and update of the whole model on `rows` samples of this rank alone. Whatever
/// it allocates is activations, and gone when it is over: look at the ledger's peak.
void training_step(ModelState& state, const ModelShape& model, std::int64_t rows);

/// What a ledger says: bytes of one rank.
struct Account {
  std::int64_t parameter = 0, gradient = 0, optimizer = 0;
  std::int64_t activation = 0;  ///< the peak of a step; 0 if there was none
  std::int64_t state() const { return parameter + gradient + optimizer; }
};

/// Holds `placement` of `model` on `device`, takes a step on `rows` rows if there are any (only of
/// the whole model), reads the ledger, and lets go of all of it.
Account hold(Device& device, const ModelShape& model, const Placement& placement,
             const Recipe& recipe, std::int64_t rows = 0);
/// The same on a dry device of its own with room for `cap` bytes.
Account hold_dry(const ModelShape& model, const Placement& placement, const Recipe& recipe,
                 std::int64_t rows = 0, std::int64_t cap = MemoryLedger::unlimited);
/// ... of the whole model.
Account hold_dry(const ModelShape& model, const Recipe& recipe, std::int64_t rows = 0);

/// The smallest batch whose activations take more than the optimizer state, found by taking dry
/// steps.
std::int64_t batch_that_passes(const ModelShape& model, const Recipe& recipe);

}  // namespace fivecuts::overview
