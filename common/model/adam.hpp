#pragma once
// The optimizer over any span of parameters: a layer, a shard, a slice. State in, state out.
#include "common/compute/operations.hpp"

namespace fivecuts {

/// First and second moment of `count` parameters, in the ledger as optimizer state: 8 bytes a
/// parameter. Where the parameters are bf16, a copy of them in f32 that takes the updates, 4 bytes
/// more: an update is mostly too small to change 8 bits of mantissa (Micikevicius et al., Mixed
/// Precision Training, arXiv:1710.03740, section 3.1).
struct AdamState {
  AdamState(Device& device, std::int64_t count, DType parameters = DType::f32)
      : m(device, Category::optimizer, 1, count), v(device, Category::optimizer, 1, count) {
    if (parameters == DType::bf16) master = Buffer(device, Category::optimizer, 1, count);
    zero(m);
    zero(v);
  }
  /// What takes the updates: the copy in f32 if there is one, or else the parameters themselves.
  Tensor weights(Tensor parameters) const {
    return master.tensor().device() != nullptr ? master.tensor() : parameters;
  }
  /// Makes the parameters what that copy is, rounded.
  void round_weights_into(Tensor parameters) const {
    if (master.tensor().device() != nullptr) round_to_bf16(master, parameters);
  }

  Buffer m, v;
  Buffer master;          ///< its owner sets it to the first weights; not there if all is f32
  std::int64_t step = 0;  ///< updates so far
};

/// One update with the mean gradient: `gradient_sum` holds a sum over `samples` samples, and is
/// divided here, once. `factor`: of one element, multiplies that mean; empty: none.
inline void adam_step(Tensor parameters, Tensor gradient_sum, std::int64_t samples,
                      AdamState& state, const AdamOptions& options, Tensor factor = {}) {
  require(samples > 0, "there is no mean gradient over no samples");
  const auto span = parameters.device()->span("update");
  adam(state.weights(parameters), gradient_sum, state.m, state.v, options, ++state.step,
       1 / static_cast<float>(samples), factor);
  state.round_weights_into(parameters);
}

}  // namespace fivecuts
