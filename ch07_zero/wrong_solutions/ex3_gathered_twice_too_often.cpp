// expect: not yet: rank 0 sent elements.*: 64, the target is 32
#include "ch07_zero/exercise.hpp"

namespace fivecuts::exercise {

void forward_and_backward(Communicator& comm, Device& device, std::span<const Tensor> shards,
                          std::span<const std::int64_t> counts, const Compute& compute) {
  const auto gathered = [&](std::size_t k) {
    const auto [first, count] = part_of(counts[k], comm.size(), comm.rank());
    Buffer whole(device, Category::parameter, 1, counts[k]);
    copy(shards[k], whole.tensor().part(first, count));
    all_reduce::all_gather(comm, whole);
    return whole;
  };
  const auto check = [&](std::size_t k) { return gathered(k).tensor().count() == counts[k]; };
  for (std::size_t k = 0; k < counts.size(); ++k) {
    if (check(k)) compute.forward(k, gathered(k));
  }
  for (std::size_t k = counts.size(); k-- > 0;) {
    if (check(k)) compute.backward_input(k, gathered(k));
    compute.backward_weight(k);
  }
}

}  // namespace fivecuts::exercise
