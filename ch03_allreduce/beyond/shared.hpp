#pragma once
// Without messages: the ranks of a node read each other's numbers where they lie.
#include "ch03_allreduce/all_reduce.hpp"
#include "common/comm/shared_buffer.hpp"

namespace fivecuts::all_reduce {

/// Each rank adds up its chunk of all ranks' numbers and writes the sum to all of them: the ring's
/// bytes in two steps for any N, and nothing is copied only to be read once. For ranks of one node.
/// Work memory: one tensor, in memory that all can reach; `x` is copied there and back. (NCCL's
/// symmetric memory; peer access over NVLink)
void shared(Communicator& comm, Tensor x, Reduction how, Workspace& work);

/// The same where `x` lies in such memory already, at the same place on every rank: nothing is
/// copied, and there is no work memory.
void shared_in(SharedBuffer& memory, Tensor x, Reduction how);

/// As an argument for a chapter that takes an all-reduce of tensors each of which lies in one of
/// `memories`.
AllReduce shared_in(std::shared_ptr<std::vector<SharedBuffer>> memories);

}  // namespace fivecuts::all_reduce
