#include "ch02_data_parallel/exercise.hpp"

namespace fivecuts::exercise {

// This sums over the ranks, and replicas that use it drift apart: soon no two are equal. Take the
// TODO line away, run the check, and find out why. Then repair it.
void sum_over_ranks(Communicator& comm, Tensor gradient, Tensor workspace) {
  unfinished("TODO(ch02/ex4): find why the ranks end with different bits");

  const int n = comm.size(), r = comm.rank();
  const Tensor mine = workspace.part(0, gradient.count());
  const Tensor theirs = workspace.part(gradient.count() * (n - 1), gradient.count());
  copy(gradient, mine);
  for (int step = 1; step < n; ++step) {
    comm.exchange(to((r - step + n) % n, mine), from((r + step) % n, theirs));
    add(gradient, theirs);
  }
}

}  // namespace fivecuts::exercise
