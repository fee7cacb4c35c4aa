// expect: not yet: .*rank . asked file 1 for .*first. counts from the beginning of the file
#include <algorithm>

#include "ch07_zero/exercise.hpp"

namespace fivecuts::exercise {

void resume(const Communicator& comm, std::int64_t count, int savers,
            const std::function<void(int m, std::int64_t first, Tensor to)>& read, Tensor shard) {
  const auto [first, mine] = part_of(count, comm.size(), comm.rank());
  for (int m = 0; m < savers; ++m) {
    const Part file = part_of(count, savers, m);
    const std::int64_t begin = std::max(first, file.first);
    const std::int64_t end = std::min(first + mine, file.first + file.count);
    if (begin >= end) continue;
    read(m, begin, shard.part(begin - first, end - begin));
  }
}

}  // namespace fivecuts::exercise
