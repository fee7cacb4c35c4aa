#include "ch07_zero/beyond/comparison.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "common/observe/table.hpp"
#include "common/observe/time_axis.hpp"
#include "common/support/units.hpp"

namespace fivecuts::zero_redundancy {

std::unique_ptr<Trainer> make_two_groups(Device& device, const Communicator& comm,
                                         const ModelShape& shape, std::uint64_t seed,
                                         const Settings& settings) {
  const int group = comm.size() % 2 == 0 ? comm.size() / 2 : 1;
  return std::make_unique<HybridSharding>(device, comm, shape, seed, settings, group);
}

namespace {

/// Six layers: more on two of four ranks than on the others, where each has one owner.
ModelShape compared() { return large_case(6); }

double apart(const std::vector<float>& a, const std::vector<float>& b) {
  require(a.size() == b.size(), "two models of one shape");
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(difference <= most)) most = difference;  // a NaN too
  }
  return most;
}

/// Two epochs, 20 steps, on the cpu.
std::vector<Outcome> train_in_world(int ranks, const BeyondRow& row, const Digits& digits) {
  CommonOptions options;
  options.device = Device::Kind::cpu;
  const Setting setting{.training = {.batch = 144, .epochs = 2, .layers = 3, .width = 12},
                        .stage = row.stage};
  return world_results<Outcome>(ranks, options, [&](Context& context) {
    return train_alone(context, context.world, digits, setting, row.make);
  });
}

}  // namespace

bool BeyondRow::agrees() const {
  return states == 1 && (same_bits || (other_order && apart <= trained_weights.absolute));
}

std::vector<BeyondRow> beyond_rows(int ranks, Cluster cluster, const Digits& digits) {
  std::vector<BeyondRow> rows = {
      {"stage 0", 0, make_trainer<>},
      {"stage 1", 1, make_trainer<>},
      {"  all-reduce and all-gather", 1, make_trainer<AllReduceAndGather>},
      {"stage 3", 3, make_trainer<>},
      {"  activations recomputed", 3, make_trainer<Recomputation>},
      {"  parameters kept to backward", 3, make_trainer<KeptParameters>},
      {"  a layer has one owner", 3, make_trainer<OneOwner>},
      {fmt::format("  in 2 groups of {}", ranks / 2), 3, make_two_groups, true},
  };
  cluster.ranks_per_node = ranks / 2;
  std::vector<Outcome> first;
  for (BeyondRow& row : rows) {
    World world{.ranks = ranks, .model = compared(), .rows = 512, .cluster = cluster};
    world.settings = {row.stage, DType::bf16};
    world.make = row.make;
    row.ranks = dry_steps(world);
    const std::vector<Outcome> trained = train_in_world(ranks, row, digits);
    if (first.empty()) first = trained;
    std::set<std::uint64_t> states;
    for (const Outcome& outcome : trained) states.insert(outcome.hash);
    row.states = static_cast<int>(states.size());
    row.same_bits = trained.front().hash == first.front().hash;
    row.apart = apart(trained.front().weights, first.front().weights);
  }
  return rows;
}

std::string beyond_text(const std::vector<BeyondRow>& rows, const Cluster& cluster) {
  const auto most = [](const BeyondRow& row, auto part) {
    double largest = 0;
    for (const StepCost& cost : row.ranks) {
      largest = std::max(largest, static_cast<double>(part(cost)));
    }
    return largest;
  };
  const auto bytes = [&](const BeyondRow& row, auto part) { return show_bytes(most(row, part)); };
  const auto flops = [](const StepCost& c) { return c.flops; };
  const auto seconds = [](const StepCost& c) { return c.seconds; };
  const auto n = static_cast<double>(rows.front().ranks.size());
  const double unit = 2 * (n - 1) / n * static_cast<double>(parameter_count(compared()));
  Table table({"trainer", "at rest", "parameters", "activations", "all", "flops", "sends",
               "to other node", "messages", "step", "digits"});
  for (const BeyondRow& row : rows) {
    table.row(
        {row.name, bytes(row, [](const StepCost& c) { return c.at_rest.state(); }),
         bytes(row, [](const StepCost& c) { return c.peak.parameter; }),
         bytes(row, [](const StepCost& c) { return c.peak.activation; }),
         bytes(row, [](const StepCost& c) { return c.peak.total; }),
         fmt::format("{:.2f}", most(row, flops) / most(rows.front(), flops)),
         fmt::format("{:.4g}", most(row, [](const StepCost& c) { return c.sent.sent; }) / unit),
         fmt::format("{:.4g}",
                     most(row, [](const StepCost& c) { return c.sent.sent_inter_node; }) / unit),
         fmt::format("{}", most(row, [](const StepCost& c) { return c.sent.messages; })),
         show_time(most(row, seconds), cluster.unit),
         row.states != 1 ? fmt::format("{} states", row.states)
         : row.same_bits ? "same bits"
         : row.agrees()  ? "within rounding"
                         : fmt::format("{:.1e} apart", row.apart)});
  }
  return table.text();
}

Padding padding_of(const std::vector<std::int64_t>& buckets, int ranks) {
  CommonOptions options;
  options.device = Device::Kind::meta;
  const std::vector<Padding> of_ranks = world_results<Padding>(ranks, options, [&](Context& c) {
    Padding padding;
    const auto sent_by = [&](const auto& collective) {
      const std::int64_t before = c.traffic.modelled().sent;
      collective();
      return (c.traffic.modelled().sent - before) / 4;
    };
    for (const std::int64_t count : buckets) {
      const Part mine = part_of(count, ranks, c.rank());
      const Buffer bucket(c.device, Category::gradient, 1, count);
      const Buffer part(c.device, Category::gradient, 1, mine.count);
      const std::int64_t before = c.memory.live(Category::workspace);
      EqualParts parts(c.device, c.world, count, DType::f32);
      const std::int64_t booked = (c.memory.live(Category::workspace) - before) / 4;
      padding.held += booked - part_of(count, ranks, 0).count - count;
      padding.sent += sent_by([&] { parts.reduce_scatter(bucket); }) -
                      sent_by([&] { c.world.reduce_scatter(bucket, part); });
    }
    return padding;
  });
  Padding all{of_ranks.front().held, 0};
  for (const Padding& of_rank : of_ranks) all.sent += of_rank.sent;
  return all;
}

// --- other conventions ---

namespace {

constexpr int gpus = 8;

/// 89 layers of 32 M and one of 3 M.
ModelShape t5_3b() {
  ModelShape model;
  for (int k = 0; k < 89; ++k) {
    model.push_back(k % 2 == 0 ? LayerShape{8000, 4000, false} : LayerShape{4000, 8000, false});
  }
  model.push_back({4000, 750, false});
  return model;
}

/// Model state between steps; `layer`: with the whole gradient of a layer, as at its peak.
std::int64_t state(int stage, DType precision, bool f32_gradients, bool layer = false) {
  World world{.ranks = gpus, .model = t5_3b()};
  world.settings = {stage, precision, false, 0, f32_gradients};
  if (!layer) return dry_state(world).value();
  const StepCost cost = dry_steps(world).front();
  return cost.at_rest.state() + cost.peak.gradient - cost.at_rest.gradient;
}

}  // namespace

std::vector<Convention> conventions() {
  constexpr DType bf16 = DType::bf16, f32 = DType::f32;
  constexpr double d = gpus;
  const auto psi = static_cast<double>(parameter_count(t5_3b()));
  const auto largest = static_cast<double>(t5_3b().front().parameters());
  return {
      {"ZeRO paper 3.1, the notes", "16 Ψ", 16 * psi, "bf16, stage 0", state(0, bf16, false)},
      {"Megatron-LM, bf16", "18 Ψ", 18 * psi, "fp32 gradients, stage 0", state(0, bf16, true)},
      {"  its distributed optimizer", "(6 + 12/d) Ψ", (6 + 12 / d) * psi, "fp32 gradients, stage 1",
       state(1, bf16, true)},
      {"Megatron-LM, fp32", "16 Ψ", 16 * psi, "fp32, stage 0", state(0, f32, false)},
      {"  its distributed optimizer", "(8 + 8/d) Ψ", (8 + 8 / d) * psi, "fp32, stage 1",
       state(1, f32, false)},
      {"DeepSpeed's estimate, stage 2, docs", "(4 + 16/d) Ψ", (4 + 16 / d) * psi,
       "fp32 gradients, stage 2", state(2, bf16, true)},
      {"  in its code", "(2 + 18/d) Ψ", (2 + 18 / d) * psi, "the same", state(2, bf16, true)},
      {"  stage 3", "4 largest + 18 Ψ/d", 4 * largest + 18 * psi / d,
       "fp32 gradients, stage 3, one whole", state(3, bf16, true, true)},
  };
}

std::string conventions_text(const std::vector<Convention>& all) {
  Table table({"convention", "a GPU holds", "GiB", "this program", "GiB by the ledger"});
  const auto gib = [](double bytes) { return fmt::format("{:.2f}", bytes / (1 << 30)); };
  for (const Convention& c : all) {
    table.row({c.name, c.formula, gib(c.by_formula), c.measured_as,
               gib(static_cast<double>(c.measured))});
  }
  return table.text() +
         "  from arXiv:1910.02054; Megatron-LM's page on its distributed optimizer; DeepSpeed's "
         "page "
         "on memory, and stage_1_and_2.py\n  and stage3.py of its code, which estimate what "
         "DeepSpeed holds, at stage 2 more than this program\n";
}

}  // namespace fivecuts::zero_redundancy
