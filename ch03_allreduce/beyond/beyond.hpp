#pragma once
// What goes further than the notes, with the ladder's signature.
#include "ch03_allreduce/beyond/shared.hpp"

namespace fivecuts::all_reduce {

/// A binomial tree to rank 0, and down again: 2 ceil(log2 N) steps instead of 2(N-1), each with the
/// whole tensor. For short messages. Work memory: one tensor.
void tree(Communicator& comm, Tensor x, Reduction how, Workspace& work);

/// The ring's bytes in 2 log2 N steps: halves, then quarters, ... are exchanged with ranks at half,
/// a quarter, ... of the distance. If N is no power of two, odd ranks among the first are folded
/// into their neighbours and get the result from them. Work memory: half a tensor, or one where a
/// rank is folded in. (Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005)
void halving_doubling(Communicator& comm, Tensor x, Reduction how, Workspace& work);

/// For nodes with fast links inside and slow ones between: a reduce-scatter inside the node, a ring
/// of each chunk across nodes, an all-gather inside. Of N ranks on nodes of m each, a rank sends
/// 2(N/m - 1)/(N/m) of D/m to other nodes instead of up to twice D. Work memory: one chunk of D/m.
/// The groups are made in the first call, by split(). Nodes of different sizes are cut into groups
/// of their greatest common divisor; if that is 1, what is left is the ring.
void hierarchical(Communicator& comm, Tensor x, Reduction how, Workspace& work);

/// The sum of the library of this transport, beside them: MPI's, NCCL's. Its bytes are modelled.
void library(Communicator& comm, Tensor x, Reduction how, Workspace& work);

}  // namespace fivecuts::all_reduce
