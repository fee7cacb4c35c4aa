// expect: not yet: .*elements on 4 ranks: rank
// ranks: 4
#include "ch03_allreduce/exercise.hpp"

namespace fivecuts::exercise {

void ring(Communicator& comm, Tensor x, Tensor work) {
  const int n = comm.size(), r = comm.rank(), left = (r + n - 1) % n, right = (r + 1) % n;
  const auto chunk = [&](int c) {
    const auto [first, count] = part_of(x.count(), n, c % n);
    return x.part(first, count);
  };
  for (int step = 1; step <= 2; ++step) {  // N - 1 is 2 only where there are 3
    const Tensor next = chunk(r + step + 1), incoming = work.part(0, next.count());
    comm.exchange(to(left, chunk(r + step)), from(right, incoming));
    add(next, incoming);
  }
  for (int step = 1; step <= 2; ++step) {
    comm.exchange(to(left, chunk(r + step - 1)), from(right, chunk(r + step)));
  }
}

}  // namespace fivecuts::exercise
