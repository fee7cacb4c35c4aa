#pragma once
// Training on the digits: batches, epochs, accuracy, and the golden model trained beside it.
#include <span>

#include "ch02_data_parallel/beyond/beyond.hpp"
#include "common/comm/context.hpp"
#include "common/model/compare.hpp"
#include "common/model/digits.hpp"

namespace fivecuts::data_parallel {

struct TrainingOptions {
  std::int64_t batch = 100;        ///< rows of the global batch, over all ranks and micro-batches
  std::int64_t micro_batches = 1;  ///< parts in which a rank computes its rows
  std::int64_t epochs = 15;
  std::int64_t layers = 3, width = 64;
  std::int64_t seed = 1;
  double learning_rate = 3e-3;
  DType precision = DType::f32;
  bool overlap = false;  ///< overlapped_step instead of training_step
  Rung rung = per_layer;
};

/// What --precision calls it.
const char* name_of_precision(DType precision);
const Tolerances& tolerances_of(DType precision);

ModelShape model_of(const TrainingOptions& options);
AdamOptions adam_of(const TrainingOptions& options);

/// The pixels and the labels of the rows of `data` that `rows` names.
std::vector<float> rows_of(const Samples& data, std::span<const std::int64_t> rows);
std::vector<std::int64_t> labels_of(const Samples& data, std::span<const std::int64_t> rows);

/// The same rows on the device, as a shard of a global batch of `global_rows`.
Shard load_shard(Device& device, const Samples& data, std::span<const std::int64_t> rows,
                 std::int64_t global_rows, DType precision = DType::f32);

/// This rank's contiguous part of the global batch `rows`, in `micro_batches` contiguous parts.
std::vector<Shard> load_shards(Device& device, const Samples& data,
                               std::span<const std::int64_t> rows, const Communicator& comm,
                               std::int64_t micro_batches, DType precision = DType::f32);

/// Global batches of one epoch, each a list of rows of `count` samples; the last one may be
/// shorter.
std::vector<std::vector<std::int64_t>> batches_of(std::int64_t count, std::int64_t batch,
                                                  std::uint64_t seed, std::int64_t epoch);

/// Share of `data` that the replica gets right.
double accuracy(const Replica& replica, const Samples& data);

struct Epoch {
  double loss = 0, golden_loss = 0;          ///< mean over the epoch's samples, before each update
  double accuracy = 0, golden_accuracy = 0;  ///< on the held-out samples
};
/// Rounding grows along a training run, and in deep models with small batches fast. So many steps
/// every run must follow golden.
inline constexpr std::int64_t early_steps = 20;

/// True if a run with these options must follow golden to its end: the range in which tolerance.hpp
/// was measured.
bool follows_to_the_end(const TrainingOptions& options);

struct TrainingResult {
  std::vector<Epoch> epochs;
  std::int64_t steps = 0, steps_with_equal_replicas = 0;
  Verdict early;  ///< the weights against golden after `early_steps`, or all if there are fewer
  Verdict loss, weights;  ///< the epochs' losses and the weights against golden, at the end
};

/// Collective. Trains a replica on digits.train and the golden model beside it; after each step the
/// hashes of all replicas are compared. `report`, if given, is called after each epoch.
TrainingResult train(Context& context, Communicator& comm, const Digits& digits,
                     const TrainingOptions& options, const AllReduce& all_reduce,
                     const std::function<void(std::size_t epoch, const Epoch&)>& report = nullptr);

/// Collective: how many different replicas the ranks hold.
int distinct_replicas(const Replica& replica, const Communicator& comm);

}  // namespace fivecuts::data_parallel
