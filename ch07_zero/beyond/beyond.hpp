#pragma once
// What goes further than the notes: the trainer of zero.hpp with one of its four moves made in
// another way. All are made as it is, collective over `comm`, and end with its weights.
//
//                         at stages            memory                      what a rank sends
//   Recomputation         any                  activations: the layers'    no more
//                                              outputs, one layer's rest
//   KeptParameters        3                    all parameters at a time    2 instead of 3
//   AllReduceAndGather    1                    no other                    3 instead of 2
//   OneOwner              3                    whole layers                the owner all of one
//   HybridSharding        2, 3, in groups of   16 Psi / g at stage 3       2 Psi / g at most to
//                         g ranks                                          other groups
#include "ch07_zero/zero.hpp"

namespace fivecuts::zero_redundancy {

/// Activations are computed again instead of kept: of each layer the input stays, the rest is back
/// for its own backward pass alone. At stage 3 the weights that takes are gathered for that anyway.
/// (Chen, Xu, Zhang and Guestrin, arXiv:1604.06174, with every layer a segment)
class Recomputation : public Trainer {
 public:
  using Trainer::Trainer;

 protected:
  void after_forward(std::size_t k, Saved& saved) override;
  void backward(std::size_t k, Saved& saved, Tensor dy, Tensor dx, bool last) override;
};

/// Stage 3 that keeps a layer's parameters from its forward pass to its backward pass: one gather a
/// micro-batch instead of two, and between the two passes the whole model. After a forward()
/// without backward pass it stays until the next step's. (FSDP's SHARD_GRAD_OP,
/// reshard_after_forward=False)
class KeptParameters : public Trainer {
 public:
  using Trainer::Trainer;

 protected:
  void after_forward(std::size_t, Saved&) override {}
};

/// Stage 1 the naive way: gradients are summed for everyone, though each needs its shard's, and the
/// updated parameters are gathered all the same. (DDP with PyTorch's ZeroRedundancyOptimizer;
/// DeepSpeed's first version)
class AllReduceAndGather : public Trainer {
 public:
  using Trainer::Trainer;

 protected:
  void reduce(std::size_t k, Tensor gradient, bool last) override;
};

/// Stage 3 as the notes' text has it: layer k lies whole on rank k mod N, which sends it to all
/// others, and is sent its gradient. N ranks share L layers evenly only if N divides L and the
/// layers are of one size; and while one port sends N-1 times, the others wait.
/// (arXiv:1910.02054, section 7.2.2)
class OneOwner : public Trainer {
 public:
  OneOwner(Device& device, const Communicator& comm, const ModelShape& shape, std::uint64_t seed,
           const Settings& settings);

 protected:
  void start_gather(std::size_t k) override;
  void reduce(std::size_t k, Tensor gradient, bool last) override;

 private:
  int owner_of(std::size_t k) const { return static_cast<int>(k) % comm_.size(); }
};

/// Stage 2 or 3 inside groups of `group` ranks, say a node, each group a replica of the others:
/// what is gathered and scattered stays inside, and a shard's gradient is summed across once a
/// step. Sums have another order than over all ranks, and other last bits. Throws Failure unless
/// `group` divides the ranks. (FSDP's HYBRID_SHARD; Zhang et al., MiCS, arXiv:2205.00119)
class HybridSharding : public Trainer {
 public:
  HybridSharding(Device& device, const Communicator& comm, const ModelShape& shape,
                 std::uint64_t seed, const Settings& settings, int group);

 protected:
  void reduce(std::size_t k, Tensor gradient, bool last) override;

 private:
  Communicator across_;  // the ranks that keep the same shards, one of each group
  all_reduce::Workspace work_across_;
};

/// The library's reduce-scatter and all-gather as NCCL has them, with parts of one size: a bucket
/// that N does not divide is copied to where it is filled up. That memory is workspace, and none of
/// the model state.
class EqualParts {
 public:
  EqualParts(Device& device, const Communicator& comm, std::int64_t count, DType type);

  std::int64_t padding() const { return whole_.tensor().count() - count_; }  ///< elements
  /// Collective. This rank's part of the sum, or what is left of it before the filling.
  Tensor reduce_scatter(Tensor bucket);
  /// Collective. `bucket` becomes what the ranks' parts hold.
  void all_gather(Tensor bucket);

 private:
  Communicator comm_;
  std::int64_t count_;
  Buffer part_, whole_;
};

}  // namespace fivecuts::zero_redundancy
