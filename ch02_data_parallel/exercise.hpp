#pragma once
// The exercises' signatures. They are fixed: the checks call them as they stand here. Edit the
// files in exercises/, then run `./course exercises ch02`.
#include <cstdint>
#include <functional>
#include <span>

#include "common/comm/communicator.hpp"
#include "common/compute/operations.hpp"
#include "common/support/exercise.hpp"

namespace fivecuts::exercise {

/// ex1, average with ragged shards (notes, section 02, figure 2, step 2).
/// In:  `gradient` [count], this rank's own: the sum of the gradients of its `samples` samples. The
///      ranks have different numbers of samples, some none.
/// Out: `gradient`, on every rank: the mean over all samples of all ranks.
/// `all_reduce(comm, tensor)` sums a tensor over the ranks, in place.
/// Target: at most count + 1 elements enter the all-reduce.
void average(Communicator& comm, const AllReduce& all_reduce, Tensor gradient,
             std::int64_t samples);

/// ex2, accumulate and reduce once (notes, section 02, figure 2: communication in step 2 only).
/// In:  `add_micro_batch(m, to)` adds to `to` [count] the sum of the gradients of micro-batch m,
///      for m = 0 .. `micro_batches` - 1. `gradient` [count] is this rank's own and holds nothing
///      in particular. `global_samples`: samples in all micro-batches of all ranks together.
/// Out: `gradient`, on every rank: the mean over all of them.
/// Targets: each micro-batch computed once; count elements enter the all-reduce, in one call.
void accumulate(Communicator& comm, const AllReduce& all_reduce, int micro_batches,
                const std::function<void(int m, Tensor to)>& add_micro_batch,
                std::int64_t global_samples, Tensor gradient);

/// ex3, a bucket (the rung copied_bucket of this chapter).
/// In:  `gradients`, this rank's own, each a tensor of its own memory and size, some empty;
///      `bucket`, as many elements as all of them together, holding nothing in particular.
/// Out: each of `gradients`, on every rank: its sum over the ranks.
/// Targets: one call of the all-reduce; no buffer allocated.
void reduce_in_bucket(Communicator& comm, const AllReduce& all_reduce,
                      std::span<const Tensor> gradients, Tensor bucket);

/// ex4, find why the replicas drift (notes, section 02: the copies stay identical).
/// In:  `gradient` [count], this rank's own; `workspace` [size of comm, count].
/// Out: `gradient`, on every rank: the sum over the ranks, the same bits everywhere.
/// Only send, receive and exchange are used.
/// Target: at most (N - 1) * count elements sent by each rank.
void sum_over_ranks(Communicator& comm, Tensor gradient, Tensor workspace);

}  // namespace fivecuts::exercise
