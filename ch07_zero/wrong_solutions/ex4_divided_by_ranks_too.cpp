// expect: not yet: .*divided by the ranks too
#include <cmath>

#include "ch07_zero/exercise.hpp"

namespace fivecuts::exercise {

double clip(Communicator& comm, Device& device, std::span<const Tensor> shards,
            std::int64_t samples, double longest) {
  double squares = 0;
  for (const Tensor shard : shards) {
    for (const float g : copy_out(shard))
      squares += static_cast<double>(g) * static_cast<double>(g);
  }
  const Buffer of_ranks(device, Category::workspace, 1, comm.size());
  copy_in(std::vector{static_cast<float>(squares)}, of_ranks.tensor().part(comm.rank(), 1));
  all_reduce::all_gather(comm, of_ranks);
  const auto all = static_cast<double>(samples * comm.size());
  const double norm = std::sqrt(sum(of_ranks)) / all;
  const double factor = norm > longest ? longest / norm : 1;
  for (const Tensor shard : shards) scale(shard, static_cast<float>(factor / all));
  return norm;
}

}  // namespace fivecuts::exercise
