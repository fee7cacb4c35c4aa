#include "ch07_zero/training.hpp"

#include <bit>
#include <cstring>
#include <numeric>
#include <set>

#include "common/model/golden.hpp"

namespace fivecuts::zero_redundancy {
namespace {

using data_parallel::labels_of;
using data_parallel::rows_of;

std::vector<float> all_weights(const Trainer& trainer, const Communicator& comm) {
  std::vector<float> all;
  for (std::size_t k = 0; k < trainer.layers().size(); ++k) {
    const auto layer = whole(trainer, k, Kind::weights, comm);
    all.insert(all.end(), layer.begin(), layer.end());
  }
  return all;
}

std::vector<double> all_weights(const golden::Model& model) {
  std::vector<double> all;
  for (const golden::Layer& layer : model.layers()) {
    const auto flat = golden::flat(layer);
    all.insert(all.end(), flat.begin(), flat.end());
  }
  return all;
}

Verdict compare_weights(const Trainer& trainer, const golden::Model& model, Tolerance tolerance,
                        const Communicator& comm) {
  return compare(comm, "weights", all_weights(trainer, comm), all_weights(model), tolerance);
}

/// f(rows) for each global batch of an epoch.
template <class F>
void for_batches(const Digits& digits, const Setting& setting, std::int64_t epoch, const F& f) {
  for (const auto& rows : data_parallel::batches_of(digits.train.count(), setting.training.batch,
                                                    setting.seed(), epoch)) {
    f(rows);
  }
}

double step(Trainer& trainer, Context& context, const Communicator& comm, const Digits& digits,
            const Setting& setting, std::span<const std::int64_t> rows) {
  const auto& o = setting.training;
  const auto shards = data_parallel::load_shards(context.device, digits.train, rows, comm,
                                                 o.micro_batches, o.precision);
  return trainer.step(shards, data_parallel::adam_of(o));
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

ModelShape large_case(std::int64_t layers) {
  return {static_cast<std::size_t>(layers), {10'000, 10'000, false, true, false}};
}

ModelShape Setting::model() const {
  return seven_billion ? large_case(70) : data_parallel::model_of(training);
}
Settings Setting::settings() const { return {stage, training.precision, prefetch, clip}; }

std::vector<float> whole(const Trainer& trainer, std::size_t k, Kind kind,
                         const Communicator& comm) {
  const Layer& layer = trainer.layers()[k];
  Tensor shard = trainer.master_shard(k);
  if (kind != Kind::weights) {
    shard = shard_of(layer, kind == Kind::first_moment ? layer.optimizer.m : layer.optimizer.v);
  }
  const std::vector<float> mine = copy_out(shard);
  std::vector<float> values;
  for (const std::string& bytes : comm.gather_text(
           {reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(float)})) {
    const std::size_t before = values.size();
    values.resize(before + bytes.size() / sizeof(float));
    if (!bytes.empty()) std::memcpy(&values[before], bytes.data(), bytes.size());
  }
  return values;
}

std::uint64_t hash(const Trainer& trainer, const Communicator& comm) {
  std::uint64_t h = 0xCBF29CE484222325u;
  const auto take = [&h](std::uint64_t word) { h = (h ^ word) * 0x100000001B3u, h ^= h >> 32; };
  for (std::size_t k = 0; k < trainer.layers().size(); ++k) {
    for (const Kind kind : {Kind::weights, Kind::first_moment, Kind::second_moment}) {
      for (const float value : whole(trainer, k, kind, comm)) {
        take(std::bit_cast<std::uint32_t>(value));
      }
    }
    take(static_cast<std::uint64_t>(trainer.layers()[k].optimizer.step));
  }
  return h;
}

int distinct_replicas(const Trainer& trainer, const Communicator& comm) {
  std::uint64_t h = 0;
  if (trainer.settings().stage < 3) {
    for (const Layer& layer : trainer.layers()) {
      h = h * 0x9E3779B97F4A7C15u + fivecuts::hash(layer.parameters);
    }
  }
  const auto hashes = comm.gather(h);
  return static_cast<int>(std::set(hashes.begin(), hashes.end()).size());
}

double accuracy(Trainer& trainer, const Samples& data, Device& device, const Communicator& comm) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(data.count()));
  std::iota(rows.begin(), rows.end(), 0);
  double correct = 0;
  for (const auto& slice :
       data_parallel::load_shards(device, data, rows, comm, 8, trainer.settings().precision)) {
    std::vector<Saved> saved;
    const Tensor logits = trainer.forward(slice, saved);
    correct += static_cast<double>(count_equal_argmax(logits, slice.labels));
  }
  return total(comm, correct) / static_cast<double>(data.count());
}

TrainingResult train(Context& context, Communicator& comm, const Digits& digits,
                     const Setting& setting, const TrainingHooks& hooks) {
  TrainingResult result;
  const data_parallel::TrainingOptions& o = setting.training;
  const Tolerances& within = data_parallel::tolerances_of(o.precision);
  const Tolerance early = o.precision == DType::f32
                              ? within.trained_weights
                              : Tolerance{within.early_steps * o.learning_rate, 0};
  const ModelShape shape = setting.model();
  const double clip = setting.clip > 0 ? setting.clip : std::numeric_limits<double>::infinity();
  Trainer trainer(context.device, comm, shape, setting.seed(), setting.settings());
  golden::Model golden(shape, setting.seed());
  const auto test_x = golden::matrix(digits.test.x, Samples::pixels);
  if (hooks.start) result.resumed = hooks.start(trainer);
  for (std::int64_t e = 0; e < o.epochs; ++e) {
    Epoch epoch{.number = e + 1};
    std::int64_t samples = 0;
    for_batches(digits, setting, e, [&](const std::vector<std::int64_t>& rows) {
      const auto x = golden::matrix(rows_of(digits.train, rows), Samples::pixels);
      const auto labels = labels_of(digits.train, rows);
      const double golden_loss = golden.loss(x, labels);
      golden.step(x, labels, data_parallel::adam_of(o), clip);

      if (++result.steps > result.resumed) {
        epoch.golden_loss += golden_loss;
        epoch.loss += total(comm, step(trainer, context, comm, digits, setting, rows));
        if (setting.clip > 0 && trainer.gradient_norm() > clip) ++result.clipped;
        samples += static_cast<std::int64_t>(rows.size());
      }
      if (result.steps == std::max(result.resumed, data_parallel::early_steps)) {
        const bool late = result.steps > data_parallel::early_steps;
        result.early =
            compare_weights(trainer, golden, late ? within.trained_weights : early, comm);
      }
    });
    if (samples == 0) continue;  // all of it was in what is resumed
    epoch.loss /= static_cast<double>(samples);
    epoch.golden_loss /= static_cast<double>(samples);
    epoch.accuracy = accuracy(trainer, digits.test, context.device, comm);
    epoch.golden_accuracy = golden.accuracy(test_x, digits.test.labels);
    result.epochs.push_back(epoch);
    if (hooks.epoch) hooks.epoch(trainer, result.steps, epoch);
  }
  if (hooks.end) hooks.end(trainer, result.steps);
  result.hash = hash(trainer, comm);
  result.golden_weights = all_weights(golden);
  result.loss = compare_losses(result.epochs, within.trained_loss, comm);
  result.weights = compare_weights(trainer, golden, within.trained_weights, comm);
  if (result.steps < data_parallel::early_steps) result.early = result.weights;
  return result;
}

Outcome train_alone(Context& context, Communicator& comm, const Digits& digits,
                    const Setting& setting, const Make& make) {
  const auto made = make(context.device, comm, setting.model(), setting.seed(), setting.settings());
  Trainer& trainer = *made;
  for (std::int64_t e = 0; e < setting.training.epochs; ++e) {
    for_batches(digits, setting, e, [&](const std::vector<std::int64_t>& rows) {
      step(trainer, context, comm, digits, setting, rows);
    });
  }
  const Communicator& state = trainer.comm();
  return {hash(trainer, state), distinct_replicas(trainer, state), all_weights(trainer, state)};
}

}  // namespace fivecuts::zero_redundancy
