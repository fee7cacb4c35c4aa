#include "ch02_data_parallel/exercise.hpp"

namespace fivecuts::exercise {

void reduce_in_bucket(Communicator& comm, const AllReduce& all_reduce,
                      std::span<const Tensor> gradients, Tensor bucket) {
  std::int64_t at = 0;
  for (const Tensor gradient : gradients) {
    copy(gradient, bucket.part(at, gradient.count()));
    at += gradient.count();
  }
  all_reduce(comm, bucket);
  at = 0;
  for (const Tensor gradient : gradients) {
    copy(bucket.part(at, gradient.count()), gradient);
    at += gradient.count();
  }
}

}  // namespace fivecuts::exercise
