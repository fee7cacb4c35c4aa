// expect: not yet: rank . sent elements: [0-9]+, the target is
#include "ch07_zero/exercise.hpp"

namespace fivecuts::exercise {

void add_and_release(Communicator& comm, Device& device, std::span<const Tensor> shards,
                     std::span<const std::int64_t> counts,
                     const std::function<void(std::size_t k, Tensor to)>& add_gradient,
                     all_reduce::Workspace& work) {
  for (std::size_t k = counts.size(); k-- > 0;) {
    const auto [first, count] = part_of(counts[k], comm.size(), comm.rank());
    const Buffer gradient(device, Category::gradient, 1, counts[k]);
    zero(gradient);
    add_gradient(k, gradient);
    all_reduce::ring(comm, gradient, Reduction::sum, work);
    add(shards[k], gradient.tensor().part(first, count));
  }
}

}  // namespace fivecuts::exercise
