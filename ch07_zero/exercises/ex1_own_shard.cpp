#include "ch07_zero/exercise.hpp"

namespace fivecuts::exercise {

void update_own_shard(Communicator& comm, Tensor parameters, Tensor gradient, std::int64_t samples,
                      AdamState& optimizer, const AdamOptions& options,
                      all_reduce::Workspace& work) {
  unfinished("TODO(ch07/ex1): sum your shard of the gradient, update it, bring it to all");
}

}  // namespace fivecuts::exercise
