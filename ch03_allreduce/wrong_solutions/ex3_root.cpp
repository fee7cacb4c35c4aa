// expect: not yet: rank 0 sent elements: 24, the target is 16
#include "ch03_allreduce/exercise.hpp"

namespace fivecuts::exercise {

void ring(Communicator& comm, Tensor x, Tensor work) {
  for (int r = 1; r < comm.size(); ++r) {  // everyone to rank 0, a chunk at a time, and back
    const std::int64_t step = std::max<std::int64_t>(1, work.count());
    for (std::int64_t at = 0; at < x.count(); at += step) {
      const Tensor some = x.part(at, std::min(step, x.count() - at));
      const Tensor incoming = work.part(0, some.count());
      if (comm.rank() == r) comm.send(0, some);
      if (comm.rank() == 0) comm.receive(r, incoming);
      if (comm.rank() == 0) add(some, incoming);
    }
  }
  for (int r = 1; r < comm.size(); ++r) {
    if (comm.rank() == 0) comm.send(r, x);
    if (comm.rank() == r) comm.receive(0, x);
  }
}

}  // namespace fivecuts::exercise
