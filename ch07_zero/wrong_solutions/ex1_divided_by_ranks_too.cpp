// expect: not yet: .*first moment.*divided twice: by the samples and by the ranks
#include "ch07_zero/exercise.hpp"

namespace fivecuts::exercise {

void update_own_shard(Communicator& comm, Tensor parameters, Tensor gradient, std::int64_t samples,
                      AdamState& optimizer, const AdamOptions& options,
                      all_reduce::Workspace& work) {
  const auto [first, count] = part_of(parameters.count(), comm.size(), comm.rank());
  all_reduce::reduce_scatter(comm, gradient, Reduction::sum, work);
  scale(gradient, 1.0f / static_cast<float>(comm.size()));
  adam_step(parameters.part(first, count), gradient.part(first, count), samples, optimizer,
            options);
  all_reduce::all_gather(comm, parameters);
}

}  // namespace fivecuts::exercise
