#include "ch03_allreduce/exercise.hpp"

namespace fivecuts::exercise {

// This works for ten numbers and hangs for a million. Take the TODO line away, run the check, and
// read what the guard says. Then repair it.
void trade(Communicator& comm, Tensor to_right, Tensor to_left, Tensor from_left,
           Tensor from_right) {
  unfinished("TODO(ch03/ex5): find why long messages hang, and repair it");

  const int n = comm.size(), left = (comm.rank() + n - 1) % n, right = (comm.rank() + 1) % n;
  comm.send(right, to_right);
  comm.send(left, to_left);
  comm.receive(left, from_left);
  comm.receive(right, from_right);
}

}  // namespace fivecuts::exercise
