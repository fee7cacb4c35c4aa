#include "ch07_zero/zero.hpp"

#include <limits>

namespace fivecuts::zero_redundancy {

// --- the step, the same at every stage ---

double Trainer::step(std::span<const Shard> micro_batches, const AdamOptions& options) {
  require(!micro_batches.empty(), "a step takes one micro-batch at least");
  for (const Layer& layer : layers_) zero(layer.gradients);
  std::int64_t rows = 0, samples = 0;  // this rank's, and those of all ranks
  for (const Shard& batch : micro_batches) rows += batch.rows();
  const Buffer losses(device_, Category::activation, 1, rows);
  for (std::int64_t first = 0; const Shard& batch : micro_batches) {
    add_gradients(batch, losses.tensor().part(first, batch.rows()),
                  &batch == &micro_batches.back());
    first += batch.rows();
    samples += batch.global_rows;
  }
  const Tensor clip = clip_by_norm(samples);
  for (Layer& layer : layers_) update(layer, samples, clip, options);
  return sum(losses);  // here the host waits for a GPU, once
}

Tensor Trainer::forward(const Shard& batch, std::vector<Saved>& saved) {
  Tensor x = batch.x;
  for (std::size_t k = 0; k < layers_.size(); ++k) {
    const LayerShape& shape = layers_[k].shape;
    gather(k);
    if (settings_.prefetch && k + 1 < layers_.size()) start_gather(k + 1);
    saved.emplace_back(device_, shape, batch.rows(), settings_.precision);
    fivecuts::forward(shape, weights(k), x, saved[k]);
    after_forward(k, saved[k]);
    x = saved[k].output();
  }
  return x;
}

// Activations stay, or the backward pass would have to compute them again (beyond/ does).
void Trainer::after_forward(std::size_t k, Saved&) { release(k); }

void Trainer::add_gradients(const Shard& batch, Tensor losses, bool last) {
  std::vector<Saved> saved;
  const Tensor logits = forward(batch, saved);
  softmax_cross_entropy(logits, batch.labels, losses);
  Tensor dy = logits;  // the gradient with respect to layer k's output
  Buffer keep;         // owns dy, once it is not the logits
  for (std::size_t k = layers_.size(); k-- > 0;) {
    Buffer dx;  // nobody asks for the gradient of the first layer's input
    if (k > 0) {
      dx = Buffer(device_, Category::activation, batch.rows(), layers_[k].shape.in,
                  settings_.precision);
    }
    backward(k, saved[k], dy, dx, last);
    keep = std::move(dx);
    dy = keep;
    saved.pop_back();
  }
}

// The weights are needed for dx only, so the first layer could do without its second gather; hooks
// around any layer, as FSDP and DeepSpeed set them, do not know which one is the first.
void Trainer::backward(std::size_t k, Saved& saved, Tensor dy, Tensor dx, bool last) {
  Layer& layer = layers_[k];
  gather(k);
  if (settings_.prefetch && k > 0) start_gather(k - 1);
  backward_input(layer.shape, weights(k), saved, dy, dx);
  release(k);  // before the gradient is there: both whole at once would be one layer more
  Buffer whole;
  if (settings_.stage >= 2) {  // the bucket to compute in, gone when this function ends
    whole = Buffer(device_, Category::gradient, 1, layer.shape.parameters(), settings_.gradients());
    zero(whole);
  }
  const Tensor gradient = settings_.stage >= 2 ? whole.tensor() : layer.gradients.tensor();
  backward_weight(layer.shape, saved, gradient);
  reduce(k, gradient, last);
}

// --- what the stages differ in ---

// When a micro-batch's gradient of a layer is whole. 0: the sum to everyone. 1: of each shard only
// to its owner, the first half of that. 2: at once, so that nobody need keep what is another's;
// with k micro-batches that is k times, as the rest was let go in between.
void Trainer::reduce(std::size_t k, Tensor gradient, bool last) {
  if (settings_.stage >= 2) {
    all_reduce::reduce_scatter(comm_, gradient, Reduction::sum, work_);
    add(layers_[k].gradients, shard_of(layers_[k], gradient));
  } else if (last && settings_.stage == 1) {
    all_reduce::reduce_scatter(comm_, gradient, Reduction::sum, work_);
  } else if (last) {
    all_reduce::ring(comm_, gradient, Reduction::sum, work_);
  }
}

// 0: everyone updates everything. 1, 2: each its shard, and the second half of the ring brings the
// result to all. 3: nobody has the whole anyway; the next gather brings it.
void Trainer::update(Layer& layer, std::int64_t samples, Tensor clip, const AdamOptions& options) {
  if (settings_.stage == 0) {
    adam_step(layer.parameters, layer.gradients, samples, layer.optimizer, options, clip);
    return;
  }
  adam_step(shard_of(layer, layer.parameters), shard_of(layer, layer.gradients), samples,
            layer.optimizer, options, clip);
  if (settings_.stage <= 2) all_reduce::all_gather(comm_, layer.parameters);
}

// 3: a layer is whole from here to release(). All shards meet on the comm lane, in the order of the
// calls, beside what is computed.
void Trainer::start_gather(std::size_t k) {
  Layer& layer = layers_[k];
  if (settings_.stage < 3 || layer.gathered != nullptr) return;
  layer.gathered = std::make_shared<Buffer>(device_, Category::parameter, 1,
                                            layer.shape.parameters(), settings_.precision);
  const Tensor whole = *layer.gathered;
  copy(layer.parameters, shard_of(layer, whole));
  layer.arriving = comm_.async(
      [held = layer.gathered](Communicator& lane) { all_reduce::all_gather(lane, *held); });
}

void Trainer::gather(std::size_t k) {
  start_gather(k);
  layers_[k].arriving.wait();
  layers_[k].arrived = true;
}

void Trainer::release(std::size_t k) {
  layers_[k].gathered = nullptr;
  layers_[k].arrived = false;
}

Tensor Trainer::weights(std::size_t k) const {
  const Layer& layer = layers_[k];
  if (settings_.stage < 3) return layer.parameters;
  if (layer.gathered == nullptr || !layer.arrived) {
    fail(
        fmt::format("the weights of layer {0} are not whole here: at stage 3 each rank keeps a "
                    "shard of them; call gather({0}) on every rank before weights({0}), and "
                    "release({0}) after it",
                    k));
  }
  return *layer.gathered;
}

// --- the norm of a gradient that lies in shards ---

// Every rank adds up the squares of its shards and tells the others: N numbers on the wire,
// whatever the model. Stage 0 has all gradients and still does the same: other partial sums would
// have other last bits. The factor stays where the gradients are, and the host never asks.
Tensor Trainer::clip_by_norm(std::int64_t samples) {
  if (settings_.clip == 0) return {};
  constexpr std::int64_t sums = 1024;
  const Buffer squares(device_, Category::workspace, 1, sums);
  zero(squares);
  for (const Layer& layer : layers_) add_square_sums(shard_of(layer, layer.gradients), squares);
  const Buffer of_ranks(device_, Category::workspace, 1, comm_.size());
  add_up(squares, of_ranks.tensor().part(comm_.rank(), 1));
  all_reduce::all_gather(comm_, of_ranks);
  if (norm_.tensor().empty()) norm_ = Buffer(device_, Category::workspace, 1, 2);
  clip_factor(of_ranks, samples, static_cast<float>(settings_.clip), norm_);
  return norm_.tensor().part(1, 1);
}

double Trainer::gradient_norm() const {
  require(!norm_.tensor().empty(),
          "no norm was asked for: Settings::clip is 0, or no step was taken");
  if (device_.dry()) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(copy_out(norm_).front());
}

// --- the model ---

Trainer::Trainer(Device& device, const Communicator& comm, const ModelShape& shape,
                 std::uint64_t seed, const Settings& settings, Cut cut)
    : device_(device), comm_(comm), settings_(settings) {
  require(settings.stage >= 0 && settings.stage <= 3, "ZeRO has the stages 0 to 3");
  const DType type = settings.precision;
  for (std::size_t k = 0; k < shape.size(); ++k) {
    const int number = static_cast<int>(k), stage = settings.stage;
    const Part all{0, shape[k].parameters()}, mine = cut(k, all.count, comm.size(), comm.rank());
    const Part held = stage >= 3 ? mine : all, summed = stage >= 2 ? mine : all,
               updated = stage >= 1 ? mine : all;
    layers_.push_back({shape[k], mine, Buffer(device, Category::parameter, 1, held.count, type),
                       Buffer(device, Category::gradient, 1, summed.count, settings.gradients()),
                       AdamState(device, updated.count, type)});
    initialise_part(shape[k], layers_[k].parameters, held, seed, number);
    if (type == DType::bf16) {
      initialise_part(shape[k], layers_[k].optimizer.master, updated, seed, number);
    }
  }
}

Part part_of_each(std::size_t, std::int64_t parameters, int ranks, int rank) {
  return part_of(parameters, ranks, rank);
}

Tensor shard_of(const Layer& layer, Tensor held) {
  if (held.count() == layer.shard.count) return held;
  return held.part(layer.shard.first, layer.shard.count);
}

Tensor Trainer::master_shard(std::size_t k) const {
  const Layer& layer = layers_[k];
  if (settings_.precision == DType::bf16) return shard_of(layer, layer.optimizer.master);
  return shard_of(layer, layer.parameters);
}

}  // namespace fivecuts::zero_redundancy
