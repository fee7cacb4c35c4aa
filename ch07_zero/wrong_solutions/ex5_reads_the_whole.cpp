// expect: not yet: rank 0 read elements .*: 1857, the target is 619
#include "ch07_zero/exercise.hpp"

namespace fivecuts::exercise {

void resume(const Communicator& comm, std::int64_t count, int savers,
            const std::function<void(int m, std::int64_t first, Tensor to)>& read, Tensor shard) {
  const Buffer whole(*shard.device(), Category::parameter, 1, count);
  for (int m = 0; m < savers; ++m) {
    const Part file = part_of(count, savers, m);
    read(m, 0, whole.tensor().part(file.first, file.count));
  }
  copy(whole.tensor().part(part_of(count, comm.size(), comm.rank()).first, shard.count()), shard);
}

}  // namespace fivecuts::exercise
