#pragma once
// ZeRO: data parallelism whose model state is cut in N (Rajbhandari, Rasley, Ruwase, He,
// arXiv:1910.02054; the notes' figures 7 and 8). Every rank computes whole layers on rows of its
// own, as in ch02; what it keeps between those moments is a shard.
//
// One layer's bucket on rank 1 of 4: '#' kept, '.' left to the others. Bytes of a rank in bf16, Psi
// parameters of 2 bytes, gradients of 2, optimizer state of 12; N = 4, Psi = 7e9:
//
//              parameters    gradients     optimizer
//    stage 0   [########]    [########]    [########]    16 Psi                112 GB
//    stage 1   [########]    [########]    [..##....]     4 Psi + 12 Psi / N    49 GB
//    stage 2   [########]    [..##....]    [..##....]     2 Psi + 14 Psi / N    38.5 GB
//    stage 3   [..##....]    [..##....]    [..##....]    16 Psi / N             28 GB
//
// What a layer goes through in a step of k micro-batches, and what a rank sends for it, in units of
// (N-1)/N of the layer:
//
//              in each micro-batch                     once, at the end             k = 1    any k
//    stage 0   forward, backward                       all-reduce, update             2        2
//    stage 1   forward, backward                       reduce-scatter, update the     2        2
//                                                      own shard, all-gather
//    stage 2   forward, backward, reduce-scatter,      update, all-gather             2      k + 1
//              release the gradient
//    stage 3   gather, forward, release, gather,       update                         3       3 k
//              backward, release, reduce-scatter,
//              release the gradient
//
// Invariant: after a step, shard r of every layer on rank r has the same bits at every stage (for k
// = 1; beyond, sums are added up in another order). Each shard of a gradient is summed along ch03's
// ring, Adam works element by element, and who keeps an element changes nothing in it.
// Cost beside the table: at stage 2 a rank holds one layer's whole gradient for a moment, at stage
// 3 one layer's parameters too (with prefetch the next one's as well), and its own shard of them
// twice. Messages are (N-1) for each layer and collective, 3 k (N-1) L at stage 3: bytes do not
// depend on the number of layers, messages do.
#include <memory>
#include <span>

#include "ch02_data_parallel/data_parallel.hpp"
#include "ch03_allreduce/all_reduce.hpp"

namespace fivecuts::zero_redundancy {

using data_parallel::Shard;  // a rank's rows of one micro-batch

struct Settings {
  int stage = 0;                 ///< 0 to 3
  DType precision = DType::f32;  ///< bf16: with weights in f32 beside it
  bool prefetch = true;          ///< stage 3: the next layer is gathered while one computes
  double clip = 0;               ///< the longest mean gradient over the whole model; 0: any
  bool f32_gradients = false;    ///< gradients in f32, whatever the precision
  DType gradients() const { return f32_gradients ? DType::f32 : precision; }
};

/// What rank `rank` of `ranks` keeps of a layer: the notes' cut is a part of each layer for each
/// rank, part_of.
using Cut = Part (*)(std::size_t layer, std::int64_t parameters, int ranks, int rank);
Part part_of_each(std::size_t layer, std::int64_t parameters, int ranks, int rank);

/// What one rank keeps of one layer's bucket, and has of it for a while.
struct Layer {
  LayerShape shape;
  Part shard;           ///< the cut's: what this rank updates from stage 1 on
  Buffer parameters;    ///< of the bucket; from stage 3 on of the shard
  Buffer gradients;     ///< of the bucket; from stage 2 on of the shard
  AdamState optimizer;  ///< of the bucket; from stage 1 on of the shard

  // Stage 3, from gather() to release(): the whole bucket. The gather that fills it holds it too.
  std::shared_ptr<Buffer> gathered{};
  bool arrived = false;
  Pending arriving{};
};

/// The layer's shard of `held`: all of it, or its part of what is held whole.
Tensor shard_of(const Layer& layer, Tensor held);

/// One rank's part of the training of one model. Everything is collective over `comm`.
class Trainer {
 public:
  /// All stages start from the same weights, those of ch02's Replica with this seed.
  Trainer(Device& device, const Communicator& comm, const ModelShape& shape, std::uint64_t seed,
          const Settings& settings, Cut cut = part_of_each);
  virtual ~Trainer() = default;

  /// One update with the gradient of all micro-batches. Returns the sum of this rank's losses
  /// before it.
  double step(std::span<const Shard> micro_batches, const AdamOptions& options);

  /// The outputs of the last layer; `saved` receives what each layer keeps for its backward pass.
  Tensor forward(const Shard& batch, std::vector<Saved>& saved);

  /// Layer k's whole bucket, in the precision of the run. At stage 3 it is there from gather(k) to
  /// release(k) only: read outside, it is a Failure that says so.
  Tensor weights(std::size_t k) const;
  void gather(std::size_t k);
  void release(std::size_t k);

  const std::vector<Layer>& layers() const { return layers_; }
  std::vector<Layer>& layers() { return layers_; }  ///< for what resumes it (checkpoint.hpp)
  const Settings& settings() const { return settings_; }
  /// The ranks among which the state is cut.
  const Communicator& comm() const { return comm_; }
  /// This rank's shard of layer k's weights as the optimizer holds them: in f32.
  Tensor master_shard(std::size_t k) const;
  /// The norm of the mean gradient in the last step, before it was clipped. Needs Settings::clip.
  double gradient_norm() const;

 protected:
  // What beyond/ does in another way.
  virtual void start_gather(std::size_t k);
  virtual void after_forward(std::size_t k, Saved& saved);
  virtual void backward(std::size_t k, Saved& saved, Tensor dy, Tensor dx, bool last);
  virtual void reduce(std::size_t k, Tensor gradient, bool last);

  Device& device_;
  Communicator comm_;
  Settings settings_;
  all_reduce::Workspace work_;  // a chunk of the largest layer
  std::vector<Layer> layers_;

 private:
  void add_gradients(const Shard& batch, Tensor losses, bool last);
  Tensor clip_by_norm(std::int64_t samples);
  void update(Layer& layer, std::int64_t samples, Tensor clip, const AdamOptions& options);

  Buffer norm_;  // and the factor that comes of it
};

}  // namespace fivecuts::zero_redundancy
