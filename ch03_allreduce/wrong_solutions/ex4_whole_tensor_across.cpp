// expect: not yet: rank . and the others at its place together sent elements between nodes
#include "ch03_allreduce/exercise.hpp"

namespace fivecuts::exercise {

void hierarchical(const Phases& phases, Communicator& inside, Communicator& across, Tensor x,
                  Tensor work) {
  const std::int64_t piece = work.count();  // all of x across, piece by piece
  for (std::int64_t at = 0; at < x.count(); at += piece) {
    const Tensor some = x.part(at, std::min(piece, x.count() - at));
    phases.reduce_scatter(across, some, work);
    phases.all_gather(across, some);
  }
  phases.reduce_scatter(inside, x, work);
  phases.all_gather(inside, x);
  phases.all_gather(across, x);  // they agree already
}

}  // namespace fivecuts::exercise
