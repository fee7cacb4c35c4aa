#pragma once
// Data parallelism: every rank holds the whole model and a part of the batch (the notes' figure 2).
//
//      rank 0            rank 1            rank 2
//    rows 0..33        rows 34..66       rows 67..99        the global batch, cut by rows
//        |                 |                 |
//   1  gradient          gradient          gradient         of its own rows, summed over them
//        \_________________|_________________/
//   2                 sum over the ranks                    the only communication: Psi elements
//        /                 |                 \              enter it, for any number of ranks
//   3  update            update            update           divided by 100, once; alike everywhere
//
// Invariant: replicas that start bitwise equal stay so, since each adds the same update to the same
// weights.
// Cost per rank: the whole model state, 16 bytes a parameter, for any number of ranks; a ring moves
// 2 (N-1)/N Psi elements a step.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/comm/communicator.hpp"
#include "common/model/adam.hpp"
#include "common/model/mlp.hpp"

namespace fivecuts::data_parallel {

/// One rank's copy of everything: what DDP calls the module and its optimizer. In bf16, parameters,
/// gradients and activations take 2 bytes each, and the optimizer keeps the weights in f32 too.
struct Replica {
  Replica(Device& device, const ModelShape& shape, std::uint64_t seed,
          DType precision = DType::f32);

  ModelShape shape;
  DType precision;
  std::vector<Buffer> parameters, gradients;  ///< one flat bucket a layer: W, then b
  std::vector<AdamState> optimizer;
};

/// This rank's rows of a global batch of `global_rows`; any number of them, none too.
struct Shard {
  Buffer x;       ///< [rows, in], in the precision of the replica
  Buffer labels;  ///< [rows], i64
  std::int64_t global_rows = 0;
  std::int64_t rows() const { return labels.tensor().count(); }
};

/// How many samples a gradient stands for, here and over all ranks.
struct Counts {
  std::int64_t local = 0, global = 0;
};

/// 1. Adds the gradient of the sum of this rank's losses to replica.gradients, and returns the loss
/// of each row. `ready(layer)`, if given, is called as soon as the gradient of that layer is whole:
/// last layer first.
Buffer add_local_gradients(Replica& replica, const Shard& shard,
                           const std::function<void(std::size_t layer)>& ready = nullptr);

/// 2. The rungs of the ladder, one signature. Each makes replica.gradients a sum over the ranks and
/// returns how many samples that sum stands for. `all_reduce` does the summing, where the rung does
/// not.
using Rung = std::int64_t (*)(Replica& replica, Counts samples, Communicator& comm,
                              const AllReduce& all_reduce);
std::int64_t none(Replica&, Counts, Communicator&, const AllReduce&);
std::int64_t gather_broadcast(Replica&, Counts, Communicator&, const AllReduce&);
std::int64_t per_tensor(Replica&, Counts, Communicator&, const AllReduce&);
std::int64_t per_layer(Replica&, Counts, Communicator&, const AllReduce&);

/// 3. One Adam update of every layer with the gradient sum divided by `samples`.
void update(Replica& replica, std::int64_t samples, const AdamOptions& options);

/// One iteration: 1, 2, 3. Returns the sum of this rank's losses before the update.
double training_step(Replica& replica, const Shard& shard, Communicator& comm, Rung rung,
                     const AllReduce& all_reduce, const AdamOptions& options);

/// Makes every replica rank 0's: what a run does once when the starts may differ.
void broadcast_parameters(Replica& replica, Communicator& comm);

void zero_gradients(Replica& replica);

/// Equal for replicas whose weights and moments are equal bit for bit.
std::uint64_t hash(const Replica& replica);

}  // namespace fivecuts::data_parallel
