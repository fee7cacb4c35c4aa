#include "ch02_data_parallel/training.hpp"

#include <numeric>
#include <set>

#include "common/model/golden.hpp"
#include "common/model/random.hpp"

namespace fivecuts::data_parallel {
namespace {

std::vector<std::int64_t> all_rows(const Samples& data) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(data.count()));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

std::span<const std::int64_t> part(std::span<const std::int64_t> rows, std::int64_t parts,
                                   int index) {
  const Part p = part_of(static_cast<std::int64_t>(rows.size()), static_cast<int>(parts), index);
  return rows.subspan(static_cast<std::size_t>(p.first), static_cast<std::size_t>(p.count));
}

double step(Replica& replica, std::span<const Shard> shards, Communicator& comm,
            const TrainingOptions& o, const AllReduce& all_reduce) {
  if (o.overlap) return overlapped_step(replica, shards.front(), comm, all_reduce, adam_of(o));
  if (shards.size() > 1)
    return accumulated_step(replica, shards, comm, o.rung, all_reduce, adam_of(o));
  return training_step(replica, shards.front(), comm, o.rung, all_reduce, adam_of(o));
}

Verdict compare_weights(const Replica& replica, const golden::Model& model, Tolerance tolerance,
                        const Communicator& comm) {
  std::vector<float> got;
  std::vector<double> want;
  for (std::size_t k = 0; k < replica.shape.size(); ++k) {
    const auto layer = copy_out(replica.parameters[k]);
    const auto golden_layer = golden::flat(model.layers()[k]);
    got.insert(got.end(), layer.begin(), layer.end());
    want.insert(want.end(), golden_layer.begin(), golden_layer.end());
  }
  return compare(comm, "weights", got, want, tolerance);
}

Tolerance early_weights(const TrainingOptions& o) {
  if (o.precision == DType::f32) return trained_weights;
  return {tolerances_of(o.precision).early_steps * o.learning_rate, 0};
}

Verdict compare_losses(std::span<const Epoch> epochs, Tolerance tolerance,
                       const Communicator& comm) {
  std::vector<float> got;
  std::vector<double> want;
  for (const Epoch& epoch : epochs) {
    got.push_back(static_cast<float>(epoch.loss));
    want.push_back(epoch.golden_loss);
  }
  return compare(comm, "loss by epoch", got, want, tolerance);
}

double total(const Communicator& comm, double mine) {
  const auto all = comm.gather(mine);
  return std::accumulate(all.begin(), all.end(), 0.0);
}

}  // namespace

std::vector<float> rows_of(const Samples& data, std::span<const std::int64_t> rows) {
  std::vector<float> x;
  for (const std::int64_t row : rows) {
    const auto first = data.x.begin() + row * Samples::pixels;
    x.insert(x.end(), first, first + Samples::pixels);
  }
  return x;
}

std::vector<std::int64_t> labels_of(const Samples& data, std::span<const std::int64_t> rows) {
  std::vector<std::int64_t> labels;
  for (const std::int64_t row : rows) labels.push_back(data.labels[static_cast<std::size_t>(row)]);
  return labels;
}

const char* name_of_precision(DType precision) {
  return precision == DType::bf16 ? "bf16" : "fp32";
}
const Tolerances& tolerances_of(DType precision) {
  return precision == DType::bf16 ? bf16_tolerances : f32_tolerances;
}

ModelShape model_of(const TrainingOptions& o) {
  return mlp_shape(Samples::pixels, o.width, Samples::classes, static_cast<int>(o.layers));
}

AdamOptions adam_of(const TrainingOptions& o) {
  return {.learning_rate = static_cast<float>(o.learning_rate)};
}

bool follows_to_the_end(const TrainingOptions& o) {
  const bool narrow = o.precision == DType::bf16;
  return o.layers <= (narrow ? 3 : 4) && o.batch >= (narrow ? 64 : 32) && o.width <= 256 &&
         o.learning_rate <= 3e-3 && o.epochs <= 60;
}

Shard load_shard(Device& device, const Samples& data, std::span<const std::int64_t> rows,
                 std::int64_t global_rows, DType precision) {
  const auto count = static_cast<std::int64_t>(rows.size());
  Shard shard{Buffer(device, Category::activation, count, Samples::pixels, precision),
              Buffer(device, Category::activation, 1, count, DType::i64), global_rows};
  copy_in(rows_of(data, rows), shard.x);
  copy_in(labels_of(data, rows), shard.labels);
  return shard;
}

std::vector<Shard> load_shards(Device& device, const Samples& data,
                               std::span<const std::int64_t> rows, const Communicator& comm,
                               std::int64_t micro_batches, DType precision) {
  std::vector<Shard> shards;
  const auto mine = part(rows, comm.size(), comm.rank());
  for (int m = 0; m < micro_batches; ++m) {
    // How many rows the micro-batches of number m have over all ranks.
    std::int64_t global = 0;
    for (int r = 0; r < comm.size(); ++r) {
      global +=
          static_cast<std::int64_t>(part(part(rows, comm.size(), r), micro_batches, m).size());
    }
    shards.push_back(load_shard(device, data, part(mine, micro_batches, m), global, precision));
  }
  return shards;
}

std::vector<std::vector<std::int64_t>> batches_of(std::int64_t count, std::int64_t batch,
                                                  std::uint64_t seed, std::int64_t epoch) {
  const auto order = shuffled(count, seed, static_cast<std::uint32_t>(epoch));
  std::vector<std::vector<std::int64_t>> batches;
  for (std::int64_t first = 0; first < count; first += batch) {
    batches.emplace_back(order.begin() + first, order.begin() + std::min(first + batch, count));
  }
  return batches;
}

double accuracy(const Replica& replica, const Samples& data) {
  constexpr std::int64_t slice = 16;  // few at a time, so that it takes less memory than a step
  Device& device = *replica.parameters.front().tensor().device();
  const auto rows = all_rows(data);
  std::int64_t correct = 0;
  for (std::int64_t first = 0; first < data.count(); first += slice) {
    const std::int64_t count = std::min(slice, data.count() - first);
    const Shard shard = load_shard(
        device, data,
        std::span(rows).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)),
        count, replica.precision);
    std::vector<Saved> saved;
    Tensor x = shard.x;
    for (std::size_t k = 0; k < replica.shape.size(); ++k) {
      saved.emplace_back(device, replica.shape[k], count, replica.precision);
      forward(replica.shape[k], replica.parameters[k], x, saved[k]);
      x = saved[k].output();
    }
    correct += count_equal_argmax(x, shard.labels);
  }
  return static_cast<double>(correct) / static_cast<double>(data.count());
}

int distinct_replicas(const Replica& replica, const Communicator& comm) {
  const auto hashes = comm.gather(hash(replica));
  return static_cast<int>(std::set(hashes.begin(), hashes.end()).size());
}

TrainingResult train(Context& context, Communicator& comm, const Digits& digits,
                     const TrainingOptions& o, const AllReduce& all_reduce,
                     const std::function<void(std::size_t epoch, const Epoch&)>& report) {
  TrainingResult result;
  const auto seed = static_cast<std::uint64_t>(o.seed);
  const Tolerances& within = tolerances_of(o.precision);
  Replica replica(context.device, model_of(o), seed, o.precision);
  golden::Model golden(replica.shape, seed);
  const auto test_x = golden::matrix(digits.test.x, Samples::pixels);
  for (std::int64_t e = 0; e < o.epochs; ++e) {
    Epoch epoch;
    for (const auto& rows : batches_of(digits.train.count(), o.batch, seed, e)) {
      const auto x = golden::matrix(rows_of(digits.train, rows), Samples::pixels);
      const auto labels = labels_of(digits.train, rows);
      epoch.golden_loss += golden.loss(x, labels);
      golden.step(x, labels, adam_of(o));

      const auto shards =
          load_shards(context.device, digits.train, rows, comm, o.micro_batches, o.precision);
      epoch.loss += total(comm, step(replica, shards, comm, o, all_reduce));
      result.steps_with_equal_replicas += distinct_replicas(replica, comm) == 1 ? 1 : 0;
      if (++result.steps == early_steps) {
        result.early = compare_weights(replica, golden, early_weights(o), comm);
      }
    }
    epoch.loss /= static_cast<double>(digits.train.count());
    epoch.golden_loss /= static_cast<double>(digits.train.count());
    epoch.accuracy = accuracy(replica, digits.test);
    epoch.golden_accuracy = golden.accuracy(test_x, digits.test.labels);
    result.epochs.push_back(epoch);
    if (report) report(result.epochs.size(), epoch);
  }
  result.loss = compare_losses(result.epochs, within.trained_loss, comm);
  result.weights = compare_weights(replica, golden, within.trained_weights, comm);
  if (result.steps < early_steps) result.early = result.weights;
  return result;
}

}  // namespace fivecuts::data_parallel
