#include "ch03_allreduce/exercise.hpp"

namespace fivecuts::exercise {

void reduce_scatter(Communicator& comm, Tensor x, Tensor work) {
  unfinished("TODO(ch03/ex1): N - 1 steps; in each, a chunk to the left and one from the right");
}

}  // namespace fivecuts::exercise
