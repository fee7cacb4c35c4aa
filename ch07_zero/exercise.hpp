#pragma once
// The exercises' signatures. They are fixed: the checks call them as they stand here. Edit the
// files in exercises/, then run `./course exercises ch07`.
//
// Everywhere: N ranks; a layer's bucket is flat and f32, of any count, also 0 and fewer than N. Its
// shard on rank r is part_of(count, N, r); bucket.part(first, count) is a view of a piece.
// The collectives are those of ch03, which count what they send:
//   all_reduce::reduce_scatter(comm, bucket, Reduction::sum, work)
//   all_reduce::all_gather(comm, bucket)                  both on each rank's shard, in its place
#include <functional>
#include <span>

#include "ch03_allreduce/all_reduce.hpp"
#include "common/model/adam.hpp"
#include "common/support/exercise.hpp"

namespace fivecuts::exercise {

/// ex1, stage 1: update the own shard (notes, section 07, stage 1: the optimizer state is cut).
/// In:  `parameters` [count], alike on all ranks. `gradient` [count], this rank's own: a sum over
///      its samples; `samples` is their number over all ranks. `optimizer`: of this rank's shard.
/// Out: `parameters`, on every rank: after one adam_step() with the mean gradient over all samples,
///      which divides the sum by `samples`. `gradient` holds anything.
/// Targets: each rank sends (N - 1)/N of the bucket twice; no memory but the chunk of `work`.
void update_own_shard(Communicator& comm, Tensor parameters, Tensor gradient, std::int64_t samples,
                      AdamState& optimizer, const AdamOptions& options,
                      all_reduce::Workspace& work);

/// ex2, stage 2: release the gradient (notes, section 07, stage 2: gradients are cut too).
/// In:  `shards[k]`: this rank's shard of layer k's gradient sum, from the micro-batches before.
///      `counts[k]`: elements of that layer's bucket. `add_gradient(k, to)` adds the gradient of
///      layer k to `to` [counts[k]]; to be called for the last layer first, once for each.
/// Out: `shards`: with this micro-batch's gradient, summed over the ranks.
/// Targets: beside the shards one layer's gradient at a time, in a Buffer(device,
/// Category::gradient, 1, count); each rank sends (N - 1)/N of each bucket once.
void add_and_release(Communicator& comm, Device& device, std::span<const Tensor> shards,
                     std::span<const std::int64_t> counts,
                     const std::function<void(std::size_t k, Tensor to)>& add_gradient,
                     all_reduce::Workspace& work);

/// What ex3 computes with. `weights` is the whole bucket of layer k.
struct Compute {
  std::function<void(std::size_t k, Tensor weights)> forward;
  std::function<void(std::size_t k, Tensor weights)> backward_input;
  std::function<void(std::size_t k)> backward_weight;  ///< needs activations only
};
/// ex3, stage 3: gather and release (notes, section 07, figure 7).
/// In:  `shards[k]`: this rank's shard of layer k's parameters; the bucket has `counts[k]`.
/// Out: forward(k) was called for each layer, first to last; then, last to first, backward_input(k)
///      and backward_weight(k). `shards` are unchanged.
/// Targets: beside the shards one layer's parameters at a time, and none while a weight gradient is
/// computed; each rank sends (N - 1)/N of each bucket twice.
void forward_and_backward(Communicator& comm, Device& device, std::span<const Tensor> shards,
                          std::span<const std::int64_t> counts, const Compute& compute);

/// ex4, clip by the global norm (notes, section 07: what lies in shards is still one gradient).
/// In:  `shards[k]`: this rank's shard of layer k's gradient, a sum over `samples` samples of all
///      ranks.
/// Out: `shards`: of the mean gradient, made as short as `longest` if longer. The norm is that
///      of the whole model. Returns it, before clipping, the same on every rank.
/// Target: each rank sends N - 1 elements at most.
double clip(Communicator& comm, Device& device, std::span<const Tensor> shards,
            std::int64_t samples, double longest);

/// ex5, resume on another number of ranks (notes, section 07: who holds what depends on N).
/// In:  a bucket of `count` elements was saved by `savers` ranks: file m holds
///      part_of(count, savers, m). `read(m, first, to)` fills `to` with elements of file m, `first`
///      being the place in that file.
/// Out: `shard`: this rank's, part_of(count, N, r).
/// Targets: no element read that is not this rank's; no file opened in vain; no memory, no message.
void resume(const Communicator& comm, std::int64_t count, int savers,
            const std::function<void(int m, std::int64_t first, Tensor to)>& read, Tensor shard);

}  // namespace fivecuts::exercise
