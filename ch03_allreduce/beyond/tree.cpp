#include <bit>

#include "ch03_allreduce/beyond/beyond.hpp"

namespace fivecuts::all_reduce {

//   N = 8       step 1         step 2         step 3            and back, in the other order
//               1 -> 0         2 -> 0         4 -> 0
//               3 -> 2         6 -> 4
//               5 -> 4
//               7 -> 6
//
// Invariant: after step k the ranks that 2^k divides hold the sum of themselves and the 2^k - 1
// ranks behind them. The busiest port carries ceil(log2 N) tensors each way, the root's.
void tree(Communicator& comm, Tensor x, Reduction how, Workspace& work) {
  const int n = comm.size(), r = comm.rank();
  // The distance to the parent; the root would have it beyond all ranks.
  const int up = r == 0 ? static_cast<int>(std::bit_ceil(static_cast<unsigned>(n))) : r & -r;
  for (int distance = 1; distance < up && r + distance < n; distance *= 2) {
    const Tensor incoming = work.beside(x, x.count());
    comm.receive(r + distance, incoming);
    combine(x, incoming, how);
  }
  if (r > 0) {
    comm.send(r - up, x);
    comm.receive(r - up, x);
  }
  for (int distance = up / 2; distance > 0; distance /= 2) {
    if (r + distance < n) comm.send(r + distance, x);  // the farthest first: it has most to do
  }
}

}  // namespace fivecuts::all_reduce
