#pragma once
// What goes further than the notes, with the ladder's signatures.
#include <span>

#include "ch02_data_parallel/data_parallel.hpp"

namespace fivecuts::data_parallel {

/// An iteration in which the backward pass hides the reduction: each layer's bucket is all-reduced
/// on the communication stream as soon as it is whole, while the layers below it are still
/// computed. Ends with the same bits as training_step with per_layer. (Li et al., PyTorch
/// Distributed, VLDB 2020, section 3.2.3)
double overlapped_step(Replica& replica, const Shard& shard, Communicator& comm,
                       const AllReduce& all_reduce, const AdamOptions& options);

/// An iteration over several micro-batches of each rank: their gradients add up where they are, and
/// one reduction at the end serves them all. Activations are those of one micro-batch.
double accumulated_step(Replica& replica, std::span<const Shard> micro_batches, Communicator& comm,
                        Rung rung, const AllReduce& all_reduce, const AdamOptions& options);

/// A rung: all gradients are copied into one bucket, reduced as one message, and copied back. What
/// DDP does by default (gradient_as_bucket_view=False): it costs a second copy of the gradients.
std::int64_t copied_bucket(Replica&, Counts, Communicator&, const AllReduce&);

/// A rung that is wrong on purpose: every rank receives all gradients and adds them up in its own
/// order, its own first. Floating-point sums depend on the order, so from three ranks on the
/// replicas drift apart.
std::int64_t own_order(Replica&, Counts, Communicator&, const AllReduce&);

}  // namespace fivecuts::data_parallel
