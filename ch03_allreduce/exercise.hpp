#pragma once
// The exercises' signatures. They are fixed: the checks call them as they stand here. Edit the
// files in exercises/, then run `./course exercises ch03`.
//
// Everywhere: N ranks, any number of them (judged are 3, then 2 and 4), all give a tensor `x` of
// the same count, f32, in place. Chunk c of x is part_of(x.count(), N, c); x.part(first, count) is
// a view of it. Only send, receive and exchange are used, and no buffer is allocated: `work` is
// memory that holds nothing in particular.
#include <functional>

#include "common/comm/communicator.hpp"
#include "common/compute/operations.hpp"
#include "common/support/exercise.hpp"

namespace fivecuts::exercise {

/// ex1, reduce-scatter (notes, section 03, figure 3, columns RS-1 to RS-3).
/// In:  `x` [count], this rank's own; N divides count. `work` [count / N].
/// Out: chunk r of `x` on rank r: the sum over the ranks. The other chunks hold anything.
/// Targets: N - 1 messages and (N - 1) * count / N elements from each rank.
void reduce_scatter(Communicator& comm, Tensor x, Tensor work);

/// ex2, all-gather (notes, section 03, figure 3, columns AG-1 to AG-3, which are wrong there).
/// In:  `x` [count]; chunk r of it on rank r is what all shall have; N divides count.
/// Out: `x`, on every rank: all chunks.
/// Targets: as for ex1.
void all_gather(Communicator& comm, Tensor x);

/// ex3, the ring for any count and any N (notes, section 03: 2 (N - 1) / N of the data).
/// In:  `x` [count], any count, also 0 and fewer than N. `work` [ceil(count / N)].
/// Out: `x`, on every rank: the sum over the ranks.
/// Targets: 2 (N - 1) messages of a chunk from each rank, all together 2 (N - 1) * count elements.
void ring(Communicator& comm, Tensor x, Tensor work);

/// The two phases, for any count: what ex1 and ex2 do. `work` [ceil(count / ranks)].
struct Phases {
  std::function<void(Communicator&, Tensor x, Tensor work)> reduce_scatter;
  std::function<void(Communicator&, Tensor x)> all_gather;
};
/// ex4, hierarchical (notes, section 03: hierarchical topologies).
/// In:  `inside`: the ranks of this node, m of them. `across`: the ranks at this one's place on
///      the k nodes. `x` [count] of any count. `work` [ceil(count / m)].
/// Out: `x`, on every rank of all nodes: the sum over all.
/// Targets: 2 (m - 1) * count elements inside each node; through `across`, 2 (k - 1) times the
/// chunk of this place, over its ranks together.
void hierarchical(const Phases& phases, Communicator& inside, Communicator& across, Tensor x,
                  Tensor work);

/// ex5, repair a deadlock.
/// In:  `to_right` and `to_left` [count], this rank's own, for its neighbours on the ring.
/// Out: `from_left` [count]: what the left neighbour, rank r - 1, had for its right one;
///      `from_right` [count]: what the right neighbour had for its left one.
/// For any count, and for 1 and 2 ranks too, where both neighbours are one.
/// Target: two messages from each rank.
void trade(Communicator& comm, Tensor to_right, Tensor to_left, Tensor from_left,
           Tensor from_right);

}  // namespace fivecuts::exercise
