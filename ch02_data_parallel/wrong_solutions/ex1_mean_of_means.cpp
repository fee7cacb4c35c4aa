// expect: not yet.*mean of the ranks' means
#include "ch02_data_parallel/exercise.hpp"

namespace fivecuts::exercise {

void average(Communicator& comm, const AllReduce& all_reduce, Tensor gradient,
             std::int64_t samples) {
  if (samples > 0) scale(gradient, 1.0f / static_cast<float>(samples));
  all_reduce(comm, gradient);
  scale(gradient, 1.0f / static_cast<float>(comm.size()));
}

}  // namespace fivecuts::exercise
