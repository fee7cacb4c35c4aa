// expect: not yet: 1857 elements, saved by 1 ranks, resumed on 3: rank 1 asked file 1 for 619 elements from 0 on; the files are 0 to 0
#include "ch07_zero/exercise.hpp"

namespace fivecuts::exercise {

void resume(const Communicator& comm, std::int64_t count, int savers,
            const std::function<void(int m, std::int64_t first, Tensor to)>& read, Tensor shard) {
  read(comm.rank(), 0, shard);
}

}  // namespace fivecuts::exercise
