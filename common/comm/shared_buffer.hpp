#pragma once
// A buffer of every rank that every rank of its node can reach. It is what peer access over NVLink
// and NCCL's symmetric memory are between GPUs.
#include <span>

#include "common/comm/communicator.hpp"
#include "common/comm/shared_memory.hpp"

namespace fivecuts {

/// One tensor on each rank of a communicator, all of one shape. Each rank owns its own, and books
/// it; all may read and write any of them, between meetings. Must end on all ranks in the same
/// order.
class SharedBuffer {
 public:
  /// Whether the ranks of `comm` can have one, the same on all: they share a node, the transport
  /// has memory for them, and their numbers are the host's. GPUs reach each other by NCCL.
  static bool possible(const Communicator& comm);

  SharedBuffer() = default;
  /// Collective. Fails on all ranks alike where it is not possible.
  SharedBuffer(const Communicator& comm, Category category, std::int64_t rows, std::int64_t cols,
               DType type = DType::f32);

  Tensor tensor() const { return tensor_; }
  operator Tensor() const { return tensor_; }
  int rank() const;  ///< of this rank among those that share
  int ranks() const;
  bool holds(Tensor x) const;  ///< x lies in this rank's
  /// Who owns this rank's memory, for whoever needs a Buffer. This stays a view of it.
  Buffer take() { return std::move(buffer_); }

  /// Collective. Returns when all ranks have come, for an operation on the part `x`, which is at
  /// the same place on each. What they wrote before, all see afterwards. With a guard, fails where
  /// they came for different ones. On the clock it takes a latency from the last one's coming.
  void meet(Tensor x, Reduction how);

  /// The part `x` of each rank's tensor, in the order of the ranks, to be read and written; valid
  /// until it is asked for again. There is no message. In the ledger, under "shared memory", its
  /// bytes on the others are `received` by the rank that reads them and `sent` by the rank that
  /// writes them: each byte is counted once, by who moves it, where a message is counted at both
  /// ends. On the clock they cross a link, to and fro.
  std::span<const Tensor> everywhere(Tensor x);

 private:
  std::shared_ptr<Communicator::State> state_;
  std::shared_ptr<SharedMemory> memory_;  // none where there are no numbers
  Buffer buffer_;
  Tensor tensor_;
  std::vector<Tensor> places_;
};

}  // namespace fivecuts
