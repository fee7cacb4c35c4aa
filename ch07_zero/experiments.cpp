#include "ch07_zero/experiments.hpp"

#include <algorithm>

namespace fivecuts::zero_redundancy {
namespace {

/// Rows of zeros, as many in each micro-batch as part_of deals out.
std::vector<Shard> blank_shards(Device& device, const Communicator& comm, const ModelShape& model,
                                std::int64_t rows, DType precision, std::int64_t micro_batches) {
  std::vector<Shard> shards;
  for (int m = 0; m < micro_batches; ++m) {
    const std::int64_t count = part_of(rows, static_cast<int>(micro_batches), m).count;
    shards.push_back({Buffer(device, Category::activation, count, model.front().in, precision),
                      Buffer(device, Category::activation, 1, count, DType::i64),
                      count * comm.size()});
    zero(shards.back().x);
    zero(shards.back().labels);
  }
  return shards;
}

}  // namespace

StepCost step_cost(Context& context, Communicator& comm, const ModelShape& model, std::int64_t rows,
                   const Settings& settings, std::int64_t micro_batches, const Make& make) {
  MemoryLedger& memory = context.memory;
  const auto trainer = make(context.device, comm, model, 1, settings);
  const auto shards =
      blank_shards(context.device, comm, model, rows, settings.precision, micro_batches);
  trainer->step(shards, {});                          // from now on its work memory is there
  const Traffic before = context.traffic.measured();  // also over groups of ranks
  const double computed = context.device.work().flops();
  memory.reset_peak();
  const double start = context.clock.now();
  StepCost cost;
  cost.at_rest = {memory.live(Category::parameter), memory.live(Category::gradient),
                  memory.live(Category::optimizer), memory.live(Category::activation),
                  memory.live()};
  trainer->step(shards, {});
  cost.peak = {memory.peak(Category::parameter), memory.peak(Category::gradient),
               memory.peak(Category::optimizer), memory.peak(Category::activation), memory.peak()};
  cost.seconds = context.clock.now() - start;
  cost.sent = context.traffic.measured() - before;
  cost.flops = context.device.work().flops() - computed;
  return cost;
}

std::vector<StageRow> climb(Context& context, Communicator& comm, const Digits& digits,
                            Setting setting, const std::vector<double>& golden) {
  const data_parallel::TrainingOptions& o = setting.training;
  const bool capped = context.memory.cap() != MemoryLedger::unlimited;
  const int chosen = setting.stage;
  std::vector<StageRow> rows;
  for (setting.stage = 0; setting.stage <= 3; ++setting.stage) {
    if (capped && setting.stage != chosen) continue;  // another may not fit
    StageRow row{.stage = setting.stage};
    const std::int64_t mine = part_of(o.batch, comm.size(), comm.rank()).count;
    row.ranks = comm.gather(
        step_cost(context, comm, setting.model(), mine, setting.settings(), o.micro_batches));
    if (!context.device.dry()) {
      const Outcome outcome = train_alone(context, comm, digits, setting);
      row.hash = outcome.hash;
      row.replicas = outcome.replicas;
      row.weights = compare(comm, "weights", outcome.weights, golden,
                            data_parallel::tolerances_of(o.precision).trained_weights);
    }
    rows.push_back(row);
  }
  return rows;
}

bool stages_agree(const std::vector<StageRow>& rows, const Setting& setting,
                  std::optional<std::uint64_t> trained) {
  const bool one_order = setting.training.micro_batches == 1;
  const bool golden = data_parallel::follows_to_the_end(setting.training);
  const auto like = [&](int a, int b) { return one_order || (a < 2) == (b < 2); };
  return std::ranges::all_of(rows, [&](const StageRow& row) {
    const auto first =
        std::ranges::find_if(rows, [&](const StageRow& r) { return like(r.stage, row.stage); });
    return row.hash == first->hash &&
           (row.stage != setting.stage || row.hash == trained.value_or(row.hash)) &&
           row.replicas == 1 && (row.weights.ok || !golden);
  });
}

}  // namespace fivecuts::zero_redundancy
