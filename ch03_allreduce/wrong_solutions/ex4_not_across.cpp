// expect: not yet: .*nodes of . ranks
#include "ch03_allreduce/exercise.hpp"

namespace fivecuts::exercise {

void hierarchical(const Phases& phases, Communicator& inside, Communicator& across, Tensor x,
                  Tensor work) {
  phases.reduce_scatter(inside, x, work);
  phases.all_gather(inside, x);
}

}  // namespace fivecuts::exercise
