#pragma once
// Training on the digits at any stage, with the golden model trained beside it.
#include "ch02_data_parallel/training.hpp"
#include "ch07_zero/zero.hpp"

namespace fivecuts::zero_redundancy {

/// `layers` layers of 10,000 x 10,000: 70 are 7B exactly, 75 are the ZeRO paper's 7.5B.
ModelShape large_case(std::int64_t layers);

/// What a run trains, and how; `training` without ch02's rungs and overlap.
struct Setting {
  data_parallel::TrainingOptions training{};
  int stage = 3;
  bool prefetch = true;
  double clip = 0;
  bool seven_billion = false;  ///< 7B instead of a model for the digits; dry

  ModelShape model() const;
  Settings settings() const;
  std::uint64_t seed() const { return static_cast<std::uint64_t>(training.seed); }
};

/// The state of a layer as one rank has it, in f32.
enum class Kind { weights, first_moment, second_moment };
/// Collective, over the control channel: every element of layer k, from the shards of all ranks.
std::vector<float> whole(const Trainer& trainer, std::size_t k, Kind kind,
                         const Communicator& comm);

/// Collective. The same number on every rank; equal for equal weights, moments and steps, bit for
/// bit, at whatever stage and on however many ranks they lie.
std::uint64_t hash(const Trainer& trainer, const Communicator& comm);

/// Collective. At stages 0 to 2: how many different sets of whole buckets the ranks hold, which
/// must be one. At stage 3 nobody holds any.
int distinct_replicas(const Trainer& trainer, const Communicator& comm);

/// Collective. Share of `data` that the model gets right.
double accuracy(Trainer& trainer, const Samples& data, Device& device, const Communicator& comm);

struct Epoch {
  std::int64_t number = 0;                   ///< 1, 2, ...
  double loss = 0, golden_loss = 0;          ///< mean over the epoch's samples, before each update
  double accuracy = 0, golden_accuracy = 0;  ///< on the held-out samples
};

struct TrainingResult {
  std::vector<Epoch> epochs;
  std::int64_t steps = 0;
  std::int64_t resumed = 0;            ///< the first of them, which another run did
  std::int64_t clipped = 0;            ///< steps whose gradient was longer than Setting::clip
  std::uint64_t hash = 0;              ///< of the state at the end
  std::vector<double> golden_weights;  ///< at the end, all layers
  Verdict early;  ///< the weights against golden's after data_parallel::early_steps, or `resumed`
  Verdict loss, weights;  ///< the epochs' losses and the weights against golden's, at the end
};

/// What a run does beside training; each may be empty.
struct TrainingHooks {
  /// Before the first step: brings the state, if there is one. Returns the steps that it has
  /// behind it; they are golden's alone then.
  std::function<std::int64_t(Trainer&)> start{};
  std::function<void(const Trainer&, std::int64_t steps, const Epoch&)> epoch{};  ///< after each
  std::function<void(const Trainer&, std::int64_t steps)> end{};
};

/// Collective. Trains on digits.train.
TrainingResult train(Context& context, Communicator& comm, const Digits& digits,
                     const Setting& setting, const TrainingHooks& hooks = {});

/// What makes a trainer over all ranks of a communicator; beyond/ has others. Collective.
using Make = std::function<std::unique_ptr<Trainer>(Device&, const Communicator&, const ModelShape&,
                                                    std::uint64_t seed, const Settings&)>;
template <class T = Trainer>
std::unique_ptr<Trainer> make_trainer(Device& device, const Communicator& comm,
                                      const ModelShape& shape, std::uint64_t seed,
                                      const Settings& settings) {
  return std::make_unique<T>(device, comm, shape, seed, settings);
}

/// Collective. The same training without golden beside it.
struct Outcome {
  std::uint64_t hash = 0;
  int replicas = 0;            ///< distinct_replicas
  std::vector<float> weights;  ///< all layers
};
Outcome train_alone(Context& context, Communicator& comm, const Digits& digits,
                    const Setting& setting, const Make& make = make_trainer<>);

}  // namespace fivecuts::zero_redundancy
