// expect: not yet.*calls of the all-reduce: [0-9]+, the target is 1
#include "ch02_data_parallel/exercise.hpp"

namespace fivecuts::exercise {

void reduce_in_bucket(Communicator& comm, const AllReduce& all_reduce,
                      std::span<const Tensor> gradients, Tensor bucket) {
  for (const Tensor gradient : gradients) all_reduce(comm, gradient);
}

}  // namespace fivecuts::exercise
