// expect: not yet: chunk . of rank .*got
#include "ch03_allreduce/exercise.hpp"

namespace fivecuts::exercise {

void reduce_scatter(Communicator& comm, Tensor x, Tensor work) {
  const int n = comm.size(), r = comm.rank(), left = (r + n - 1) % n, right = (r + 1) % n;
  const std::int64_t count = x.count() / n;
  const auto chunk = [&](int c) { return x.part((c + n) % n * count, count); };
  for (int step = 1; step < n; ++step) {
    comm.exchange(to(left, chunk(r + step)), from(right, work));
    add(chunk(r + step), work);  // what came is the next chunk
  }
}

}  // namespace fivecuts::exercise
