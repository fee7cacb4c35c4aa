// expect: not yet: a collective of the library was called directly
#include "ch03_allreduce/exercise.hpp"

namespace fivecuts::exercise {

void reduce_scatter(Communicator& comm, Tensor x, Tensor) { comm.all_reduce(x); }

}  // namespace fivecuts::exercise
