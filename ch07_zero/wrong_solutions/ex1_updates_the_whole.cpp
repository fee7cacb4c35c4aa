// expect: not yet: rank 0 allocated bytes, where its own shard is all that it updates: [0-9]+, the target is 0
#include "ch07_zero/exercise.hpp"

namespace fivecuts::exercise {

void update_own_shard(Communicator& comm, Tensor parameters, Tensor gradient, std::int64_t samples,
                      AdamState& optimizer, const AdamOptions& options,
                      all_reduce::Workspace& work) {
  AdamState of_all(*parameters.device(), parameters.count());
  all_reduce::ring(comm, gradient, Reduction::sum, work);
  adam_step(parameters, gradient, samples, of_all, options);
}

}  // namespace fivecuts::exercise
