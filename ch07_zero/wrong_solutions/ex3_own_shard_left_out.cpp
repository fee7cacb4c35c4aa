// expect: not yet: in forward.0. rank ., element .: .*the weights were not whole
#include "ch07_zero/exercise.hpp"

namespace fivecuts::exercise {

void forward_and_backward(Communicator& comm, Device& device, std::span<const Tensor> shards,
                          std::span<const std::int64_t> counts, const Compute& compute) {
  const auto gathered = [&](std::size_t k) {
    Buffer whole(device, Category::parameter, 1, counts[k]);
    zero(whole);
    all_reduce::all_gather(comm, whole);
    return whole;
  };
  for (std::size_t k = 0; k < counts.size(); ++k) compute.forward(k, gathered(k));
  for (std::size_t k = counts.size(); k-- > 0;) {
    compute.backward_input(k, gathered(k));
    compute.backward_weight(k);
  }
}

}  // namespace fivecuts::exercise
