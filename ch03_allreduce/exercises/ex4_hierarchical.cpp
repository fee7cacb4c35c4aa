#include "ch03_allreduce/exercise.hpp"

namespace fivecuts::exercise {

void hierarchical(const Phases& phases, Communicator& inside, Communicator& across, Tensor x,
                  Tensor work) {
  unfinished("TODO(ch03/ex4): sum inside the node, then across the nodes, then spread inside");
}

}  // namespace fivecuts::exercise
