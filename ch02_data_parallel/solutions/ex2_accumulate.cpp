#include "ch02_data_parallel/exercise.hpp"

namespace fivecuts::exercise {

void accumulate(Communicator& comm, const AllReduce& all_reduce, int micro_batches,
                const std::function<void(int m, Tensor to)>& add_micro_batch,
                std::int64_t global_samples, Tensor gradient) {
  zero(gradient);
  for (int m = 0; m < micro_batches; ++m) add_micro_batch(m, gradient);
  all_reduce(comm, gradient);
  scale(gradient, 1.0f / static_cast<float>(global_samples));
}

}  // namespace fivecuts::exercise
