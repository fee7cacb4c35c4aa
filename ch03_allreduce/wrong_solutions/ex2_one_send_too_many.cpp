// expect: not yet: rank 0 sent messages: 3, the target is 2
#include "ch03_allreduce/exercise.hpp"

namespace fivecuts::exercise {

void all_gather(Communicator& comm, Tensor x) {
  const int n = comm.size(), r = comm.rank(), left = (r + n - 1) % n, right = (r + 1) % n;
  const std::int64_t count = x.count() / n;
  const auto chunk = [&](int c) { return x.part(c % n * count, count); };
  for (int step = 1; step <= n; ++step) {
    comm.exchange(to(left, chunk(r + step - 1)), from(right, chunk(r + step)));
  }
}

}  // namespace fivecuts::exercise
