// expect: not yet: when the gradient of layer . was computed, rank 0 still held [0-9]+ bytes beside its shards.*release each
#include <vector>

#include "ch07_zero/exercise.hpp"

namespace fivecuts::exercise {

void add_and_release(Communicator& comm, Device& device, std::span<const Tensor> shards,
                     std::span<const std::int64_t> counts,
                     const std::function<void(std::size_t k, Tensor to)>& add_gradient,
                     all_reduce::Workspace& work) {
  std::vector<Buffer> gradients(counts.size());
  for (std::size_t k = counts.size(); k-- > 0;) {
    const auto [first, count] = part_of(counts[k], comm.size(), comm.rank());
    gradients[k] = Buffer(device, Category::gradient, 1, counts[k]);
    zero(gradients[k]);
    add_gradient(k, gradients[k]);
    all_reduce::reduce_scatter(comm, gradients[k], Reduction::sum, work);
    add(shards[k], gradients[k].tensor().part(first, count));
  }
}

}  // namespace fivecuts::exercise
