// expect: not yet: a collective of the library was called directly
#include "ch02_data_parallel/exercise.hpp"

namespace fivecuts::exercise {

void reduce_in_bucket(Communicator& comm, const AllReduce& all_reduce,
                      std::span<const Tensor> gradients, Tensor bucket) {
  for (const Tensor gradient : gradients) comm.all_reduce(gradient);
}

}  // namespace fivecuts::exercise
