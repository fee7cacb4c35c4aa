#include "ch07_zero/exercise.hpp"

namespace fivecuts::exercise {

void resume(const Communicator& comm, std::int64_t count, int savers,
            const std::function<void(int m, std::int64_t first, Tensor to)>& read, Tensor shard) {
  unfinished("TODO(ch07/ex5): read your shard from the files that hold pieces of it");
}

}  // namespace fivecuts::exercise
