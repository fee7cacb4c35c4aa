#pragma once
// All-reduce: every rank has D numbers and ends with their sums over the ranks (the notes' figure
// 3). Built on send, receive and exchange alone.
//
//   The ring: D in N chunks, each message goes to the left neighbour.      rank 0 <- rank 1
//   Rank r ends the first phase with chunk r whole, as in NCCL and            |        ^
//   MPI. Block b of figure 3 is chunk b mod N.                                v        |
//                                                                          rank 3 -> rank 2
//
//   N = 4, what arrives and is added (+) or kept (=), as chunk:ranks in it
//
//                     reduce-scatter                      all-gather
//           step 1     step 2      step 3          step 1    step 2    step 3
//   rank 0  +2:01      +3:012      +0:0123         =1        =2        =3
//   rank 1  +3:12      +0:123      +1:0123         =2        =3        =0
//   rank 2  +0:23      +1:230      +2:0123         =3        =0        =1
//   rank 3  +1:30      +2:301      +3:0123         =0        =1        =2
//
//   Invariant of the first phase: after step s, chunk r+s+1 on rank r is the sum of s+1 ranks, r to
//   r+s. Of the second: after step s, chunks r to r+s on rank r are whole.
//
//   Cost, of D elements; alpha is a message's latency, d the time in which all D cross a link:
//
//                        rank 0 sends    another sends     all send      time (adding is free)
//     gather_broadcast       (N-1) D          D           2(N-1) D      2 alpha + 2(N-1) d
//     full_exchange          (N-1) D       (N-1) D        N(N-1) D        alpha + (N-1) d
//     ring                2(N-1)/N D      2(N-1)/N D      2(N-1) D      2(N-1) (alpha + d/N)
//
//   The ring sends no less in all than the root: it spreads it. No all-reduce made of messages can
//   load its busiest rank less (Patarasuk and Yuan, JPDC 69(2), 2009).
#include <any>
#include <climits>

#include "common/comm/communicator.hpp"

namespace fivecuts::all_reduce {

/// What an algorithm keeps from one call to the next: memory to work in, booked as workspace, so
/// that a training step allocates nothing; and groups of ranks. One is for one rank, one
/// communicator, one algorithm, and one lane: work under async() needs its own.
class Workspace {
 public:
  /// `count` elements of x's type beside x. They hold nothing in particular; what was given before
  /// is given again.
  Tensor beside(Tensor x, std::int64_t count);
  /// What make() returned when it was first asked for. Collective if make() is.
  template <class T, class Make>
  T& once(const Make& make) {
    if (!made_.has_value()) made_ = std::make_shared<T>(make());
    return **std::any_cast<std::shared_ptr<T>>(&made_);
  }

  /// Ranks of a node, for `hierarchical`; 0: as Communicator::leaves_node says.
  int ranks_per_node = 0;

 private:
  Buffer memory_;
  std::any made_;
};

/// to = to + from, or the larger of both.
void combine(Tensor to, Tensor from, Reduction how);

/// The rungs of the ladder, one signature. Collective: every rank of `comm` gives a tensor `x` of
/// the same count (any; also 0, or fewer elements than ranks) and type (f32, bf16, i64). On every
/// rank `x` becomes the sum, or maximum, over the ranks: the same bits everywhere, since each
/// element is added up in one order, and copied or added up by all in that order.
using Algorithm = void (*)(Communicator& comm, Tensor x, Reduction how, Workspace& work);
void gather_broadcast(Communicator& comm, Tensor x, Reduction how, Workspace& work);
void full_exchange(Communicator& comm, Tensor x, Reduction how, Workspace& work);
void ring(Communicator& comm, Tensor x, Reduction how, Workspace& work);

/// The ring's two phases. Chunk r is part_of(x.count(), N, r).
/// After reduce_scatter, chunk r of rank r is whole, and the others hold nothing in particular.
/// all_gather brings chunk r of rank r to all. Work memory: one chunk, and none.
/// With fewer `steps` than N - 1 they stop early, for a look at the chunks on their way.
void reduce_scatter(Communicator& comm, Tensor x, Reduction how, Workspace& work,
                    int steps = INT_MAX);
void all_gather(Communicator& comm, Tensor x, int steps = INT_MAX);

/// The mean over the ranks: the sum, scaled once, alike on all of them. For f32 and bf16.
void average(Algorithm algorithm, Communicator& comm, Tensor x, Workspace& work);

}  // namespace fivecuts::all_reduce
