// expect: not yet: chunk 0 of rank 0.*belongs to rank
#include "ch03_allreduce/exercise.hpp"

namespace fivecuts::exercise {

void reduce_scatter(Communicator& comm, Tensor x, Tensor work) {
  const int n = comm.size(), r = comm.rank(), left = (r + n - 1) % n, right = (r + 1) % n;
  const std::int64_t count = x.count() / n;
  const auto chunk = [&](int c) { return x.part((c + n) % n * count, count); };
  for (int step = 1; step < n; ++step) {  // to the right: rank r ends with another chunk
    comm.exchange(to(right, chunk(r - step + 1)), from(left, work));
    add(chunk(r - step), work);
  }
}

}  // namespace fivecuts::exercise
