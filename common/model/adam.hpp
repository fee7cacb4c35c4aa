#pragma once
// The optimizer over any span of parameters: a layer, a shard, a slice. State in, state out.
#include "common/compute/operations.hpp"

namespace fivecuts {

/// First and second moment of `count` parameters, in the ledger as optimizer state: 8 bytes a
/// parameter.
struct AdamState {
  AdamState(Device& device, std::int64_t count)
      : m(device, Category::optimizer, 1, count), v(device, Category::optimizer, 1, count) {
    zero(m);
    zero(v);
  }
  Buffer m, v;
  std::int64_t step = 0;  ///< updates so far
};

/// One update with the mean gradient: `gradient_sum` holds a sum over `samples` samples, and is
/// divided here, once.
inline void adam_step(Tensor parameters, Tensor gradient_sum, std::int64_t samples,
                      AdamState& state, const AdamOptions& options) {
  require(samples > 0, "there is no mean gradient over no samples");
  const auto span = parameters.device()->span("update");
  adam(parameters, gradient_sum, state.m, state.v, options, ++state.step,
       1.0f / static_cast<float>(samples));
}

}  // namespace fivecuts
