// expect: not yet: rank . and the others at its place together sent elements between nodes
// ranks: 4
#include "ch03_allreduce/exercise.hpp"

namespace fivecuts::exercise {

// The right sums. But three ranks make nodes of one rank or a single node, where a chunk is all of
// x or none of it goes across: with four, on two nodes of two, it is twice what it may be.
void hierarchical(const Phases& phases, Communicator& inside, Communicator& across, Tensor x,
                  Tensor work) {
  phases.reduce_scatter(inside, x, work);
  if (across.size() > 1) {
    phases.reduce_scatter(across, x, work);
    phases.all_gather(across, x);
  }
  phases.all_gather(inside, x);
}

}  // namespace fivecuts::exercise
