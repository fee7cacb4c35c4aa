#pragma once
// What the benchmarks of a training step train on.
#include <algorithm>

#include "ch02_data_parallel/data_parallel.hpp"
#include "common/model/random.hpp"

namespace fivecuts::data_parallel {

/// One batch of this rank: `rows` rows of `width`, another one for each number. The data is random,
/// so the labels cannot be learnt by heart: a loss near zero would bring denormal numbers, and
/// measure those.
inline Shard random_shard(Device& device, std::int64_t rows, std::int64_t width,
                          const Communicator& comm, int number) {
  Shard shard{Buffer(device, Category::activation, rows, width),
              Buffer(device, Category::activation, 1, rows, DType::i64), rows * comm.size()};
  const auto tensor = static_cast<std::uint32_t>(number);
  fill_uniform(shard.x, 2, tensor, 1.0f, comm.rank() * rows);
  std::vector<std::int64_t> labels;
  for (std::int64_t r = 0; r < rows; ++r) {
    const float at = uniform(3, tensor, r, comm.rank()) / 2 + 0.5f;
    labels.push_back(
        std::min(static_cast<std::int64_t>(at * static_cast<float>(width)), width - 1));
  }
  copy_in(labels, shard.labels);
  return shard;
}

}  // namespace fivecuts::data_parallel
