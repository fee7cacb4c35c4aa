// expect: not yet: part[(]0, [0-9]+[)] reaches beyond its tensor of [0-9]+ elements
#include "ch02_data_parallel/exercise.hpp"

namespace fivecuts::exercise {

void average(Communicator& comm, const AllReduce& all_reduce, Tensor gradient,
             std::int64_t samples) {
  all_reduce(comm, gradient.part(0, gradient.count() + 1));
}

}  // namespace fivecuts::exercise
