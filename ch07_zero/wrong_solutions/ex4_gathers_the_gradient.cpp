// expect: not yet: rank 0 sent elements: [0-9]+, the target is 2
#include <cmath>

#include "ch07_zero/exercise.hpp"

namespace fivecuts::exercise {

double clip(Communicator& comm, Device& device, std::span<const Tensor> shards,
            std::int64_t samples, double longest) {
  double squares = 0;
  for (const Tensor shard : shards) {
    std::int64_t longest_shard = 1;  // of the ranks: shards differ by one element at most
    for (const std::int64_t count : comm.gather(shard.count())) {
      longest_shard = std::max(longest_shard, count);
    }
    const Buffer all(device, Category::workspace, 1, comm.size() * longest_shard);
    zero(all);
    copy(shard, all.tensor().part(comm.rank() * longest_shard, shard.count()));
    all_reduce::all_gather(comm, all);
    for (const float g : copy_out(all)) squares += static_cast<double>(g) * static_cast<double>(g);
  }
  const auto all = static_cast<double>(samples);
  const double norm = std::sqrt(squares) / all;
  const double factor = norm > longest ? longest / norm : 1;
  for (const Tensor shard : shards) scale(shard, static_cast<float>(factor / all));
  return norm;
}

}  // namespace fivecuts::exercise
