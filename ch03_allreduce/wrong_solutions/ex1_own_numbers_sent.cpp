// expect: not yet: chunk 0 of rank 0
#include "ch03_allreduce/exercise.hpp"

namespace fivecuts::exercise {

void reduce_scatter(Communicator& comm, Tensor x, Tensor work) {
  const int n = comm.size(), r = comm.rank(), left = (r + n - 1) % n, right = (r + 1) % n;
  const std::int64_t count = x.count() / n;
  const auto chunk = [&](int c) { return x.part((c + n) % n * count, count); };
  for (int step = 1; step < n; ++step) {  // the same chunk again, without what was added
    comm.exchange(to(left, chunk(r + 1)), from(right, work));
    add(chunk(r + 2), work);
  }
}

}  // namespace fivecuts::exercise
