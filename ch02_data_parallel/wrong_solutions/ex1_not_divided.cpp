// expect: not yet.*not been divided
#include "ch02_data_parallel/exercise.hpp"

namespace fivecuts::exercise {

void average(Communicator& comm, const AllReduce& all_reduce, Tensor gradient,
             std::int64_t samples) {
  all_reduce(comm, gradient);
}

}  // namespace fivecuts::exercise
