// expect: not yet: rank . opened files: [0-9], the target is
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
    const bool some = begin < end;
    read(m, some ? begin - file.first : 0,
         shard.part(some ? begin - first : 0, some ? end - begin : 0));
  }
}

}  // namespace fivecuts::exercise
