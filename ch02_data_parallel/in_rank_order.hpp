#pragma once
// For tests that compare bits: an all-reduce that adds in the order of the ranks, every time. The
// library promises no order.
#include "common/comm/communicator.hpp"
#include "common/compute/operations.hpp"

namespace fivecuts::data_parallel {

inline void in_rank_order(Communicator& comm, Tensor tensor) {
  if (comm.rank() > 0) {
    comm.send(0, tensor);
    return comm.receive(0, tensor);
  }
  const Buffer incoming(*tensor.device(), Category::workspace, 1, tensor.count(), tensor.type());
  for (int r = 1; r < comm.size(); ++r) {
    comm.receive(r, incoming);
    add(tensor, incoming);
  }
  for (int r = 1; r < comm.size(); ++r) comm.send(r, tensor);
}

}  // namespace fivecuts::data_parallel
