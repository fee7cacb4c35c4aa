#include "ch02_data_parallel/data_parallel.hpp"

namespace fivecuts::data_parallel {

// --- the iteration ---

double training_step(Replica& replica, const Shard& shard, Communicator& comm, Rung rung,
                     const AllReduce& all_reduce, const AdamOptions& options) {
  zero_gradients(replica);
  const Buffer losses = add_local_gradients(replica, shard);                                // 1
  const auto samples = rung(replica, {shard.rows(), shard.global_rows}, comm, all_reduce);  // 2
  update(replica, samples, options);                                                        // 3
  return sum(losses);  // last: a GPU is asked for everything before, and waited for only now
}

// --- the ladder ---

// No communication. Every rank follows its own rows to its own weights: after one step there are N
// models, and none of them has seen the whole batch.
std::int64_t none(Replica&, Counts samples, Communicator&, const AllReduce&) {
  return samples.local;
}

// Everyone to rank 0 and back: right, and the root pays for all. Elements on the wire, each way:
//
//      N     root sends, receives     another rank      all together
//      2              1 Psi              1 Psi              2 Psi
//      4              3 Psi              1 Psi              6 Psi
//      N          (N-1) Psi              1 Psi         2(N-1) Psi
//
// Rank 0 adds in the order of the ranks and all receive its sum, so the bits are the same
// everywhere.
std::int64_t gather_broadcast(Replica& replica, Counts samples, Communicator& comm,
                              const AllReduce&) {
  for (const Tensor gradient : replica.gradients) {
    if (comm.rank() == 0) {
      // Another rank's gradient, as long as its own; one at a time, whatever the number of ranks.
      const Buffer incoming(*gradient.device(), Category::workspace, 1, gradient.count(),
                            gradient.type());
      for (int r = 1; r < comm.size(); ++r) {
        comm.receive(r, incoming);
        add(gradient, incoming);
      }
      for (int r = 1; r < comm.size(); ++r) comm.send(r, gradient);
    } else {
      comm.send(0, gradient);
      comm.receive(0, gradient);
    }
  }
  return samples.global;
}

// An all-reduce for each weight and each bias. The load is even, but a bias of 64 numbers pays the
// latency of a whole collective.
std::int64_t per_tensor(Replica& replica, Counts samples, Communicator& comm,
                        const AllReduce& all_reduce) {
  for (std::size_t k = 0; k < replica.shape.size(); ++k) {
    all_reduce(comm, weight_of(replica.shape[k], replica.gradients[k]));
    if (replica.shape[k].bias) all_reduce(comm, bias_of(replica.shape[k], replica.gradients[k]));
  }
  return samples.global;
}

// An all-reduce for each layer: weight and bias lie side by side in the layer's bucket, so one
// message carries both and nothing is copied to bring them together. The bytes are the same; the
// messages are half.
std::int64_t per_layer(Replica& replica, Counts samples, Communicator& comm,
                       const AllReduce& all_reduce) {
  for (const Tensor gradient : replica.gradients) all_reduce(comm, gradient);
  return samples.global;
}

// --- the phases 1 and 3 ---

Buffer add_local_gradients(Replica& replica, const Shard& shard,
                           const std::function<void(std::size_t layer)>& ready) {
  const ModelShape& shape = replica.shape;
  Device& device = *replica.gradients.front().tensor().device();
  std::vector<Saved> saved;
  Tensor x = shard.x;
  for (std::size_t k = 0; k < shape.size(); ++k) {
    saved.emplace_back(device, shape[k], shard.rows(), replica.precision);
    forward(shape[k], replica.parameters[k], x, saved[k]);
    x = saved[k].output();
  }

  const Tensor logits = x;  // from here on: the gradient with respect to them
  Buffer losses(device, Category::activation, 1, shard.rows());
  softmax_cross_entropy(logits, shard.labels, losses);

  Tensor dy = logits;  // [rows, out of layer k], the gradient with respect to its output
  Buffer keep;         // owns dy, once it is not the logits
  for (std::size_t k = shape.size(); k-- > 0;) {
    Buffer dx;  // the first layer's input is data: nobody asks for its gradient
    if (k > 0) {
      dx = Buffer(device, Category::activation, shard.rows(), shape[k].in, replica.precision);
    }
    backward_input(shape[k], replica.parameters[k], saved[k], dy, dx);
    backward_weight(shape[k], saved[k], replica.gradients[k]);
    if (ready) ready(k);
    keep = std::move(dx);
    dy = keep;
  }
  return losses;
}

// The sum becomes a mean here, once, whatever the cut was: dividing on each rank by its own count
// would give a mean of means, which is another number as soon as the counts differ.
void update(Replica& replica, std::int64_t samples, const AdamOptions& options) {
  if (samples == 0) return;  // `none` on a rank without rows: nothing was learnt
  for (std::size_t k = 0; k < replica.shape.size(); ++k) {
    adam_step(replica.parameters[k], replica.gradients[k], samples, replica.optimizer[k], options);
  }
}

// --- the replica ---

Replica::Replica(Device& device, const ModelShape& model, std::uint64_t seed, DType type)
    : shape(model), precision(type) {
  for (std::size_t k = 0; k < shape.size(); ++k) {
    const std::int64_t count = shape[k].parameters();
    parameters.emplace_back(device, Category::parameter, 1, count, precision);
    gradients.emplace_back(device, Category::gradient, 1, count, precision);
    optimizer.emplace_back(device, count, precision);
    initialise(shape[k], optimizer[k].weights(parameters[k]), seed, static_cast<int>(k));
    optimizer[k].round_weights_into(parameters[k]);
  }
  zero_gradients(*this);
}

void zero_gradients(Replica& replica) {
  for (const Tensor gradient : replica.gradients) zero(gradient);
}

void broadcast_parameters(Replica& replica, Communicator& comm) {
  for (std::size_t k = 0; k < replica.shape.size(); ++k) {
    comm.broadcast(replica.optimizer[k].weights(replica.parameters[k]), 0);
    replica.optimizer[k].round_weights_into(replica.parameters[k]);
  }
}

std::uint64_t hash(const Replica& replica) {
  std::uint64_t h = 0;
  for (std::size_t k = 0; k < replica.shape.size(); ++k) {
    const auto& [m, v, master, step] = replica.optimizer[k];
    for (const Tensor t :
         {replica.parameters[k].tensor(), m.tensor(), v.tensor(), master.tensor()}) {
      h = h * 0x9E3779B97F4A7C15u + fivecuts::hash(t);
    }
  }
  return h;
}

}  // namespace fivecuts::data_parallel
