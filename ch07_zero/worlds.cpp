#include "ch07_zero/worlds.hpp"

#include <algorithm>

#include "common/support/units.hpp"

namespace fivecuts::zero_redundancy {
namespace {

CommonOptions options_of(const World& world) {
  CommonOptions options;
  options.device = Device::Kind::meta;
  options.memory_cap = world.cap;
  options.cluster = world.cluster;
  return options;
}

/// The smallest N in [1, most_ranks] that fits; 0: none. More ranks never hold more.
int first_that_fits(World world) {
  const auto fits = [&](int ranks) {
    world.ranks = ranks;
    return dry_state(world).has_value();
  };
  if (!fits(Figure8::most_ranks)) return 0;
  int too_few = 0, enough = Figure8::most_ranks;
  while (enough - too_few > 1) {
    const int middle = (too_few + enough) / 2;
    (fits(middle) ? enough : too_few) = middle;
  }
  return enough;
}

/// The smallest N, `at_rest` or more, at which a step fits; 0: none.
int first_step_that_fits(World world, int at_rest) {
  for (world.ranks = at_rest; 0 < world.ranks && world.ranks <= Figure8::most_ranks;
       ++world.ranks) {
    try {
      dry_steps(world);
      return world.ranks;
    } catch (const OutOfMemory&) {
    }
  }
  return 0;
}

}  // namespace

ModelShape small_case(int ranks) { return {4, {4 * ranks, 4 * ranks, false}}; }

std::vector<StepCost> dry_steps(const World& world) {
  return world_results<StepCost>(world.ranks, options_of(world), [&](Context& context) {
    return step_cost(context, context.world, world.model, world.rows, world.settings,
                     world.micro_batches, world.make);
  });
}

std::optional<std::int64_t> dry_state(const World& world) {
  try {
    const auto all = world_results<std::int64_t>(world.ranks, options_of(world), [&](Context& c) {
      const auto trainer = world.make(c.device, c.world, world.model, 1, world.settings);
      return c.memory.model_state();
    });
    return std::ranges::max(all);
  } catch (const OutOfMemory&) {
    return {};
  }
}

Figure8 figure8() {
  Figure8 figure;
  for (std::size_t stage = 0; stage < figure.bytes.size(); ++stage) {
    World world{.model = large_case(70)};
    world.settings = {static_cast<int>(stage), DType::bf16};
    for (std::size_t k = 0; k < Figure8::ranks.size(); ++k) {
      world.ranks = Figure8::ranks[k];
      figure.bytes[stage][k] = dry_state(world).value();
    }
    for (std::size_t k = 0; k < Figure8::caps.size(); ++k) {
      world.cap = Figure8::caps[k];
      figure.at_rest_from[stage][k] = first_that_fits(world);
      figure.step_from[stage][k] = first_step_that_fits(world, figure.at_rest_from[stage][k]);
    }
    figure.paper[stage] =
        dry_state({.ranks = 64, .model = large_case(75), .settings = world.settings}).value();
  }
  return figure;
}

std::vector<WireRow> wire_rows(int ranks) {
  std::vector<WireRow> rows;
  const auto psi = static_cast<double>(parameter_count(small_case(ranks)));
  for (const std::int64_t k : {1, 2, 4}) {
    WireRow row{.micro_batches = k};
    for (std::size_t stage = 0; stage < row.units.size(); ++stage) {
      World world{.ranks = ranks, .model = small_case(ranks), .micro_batches = k, .rows = k};
      world.settings = {static_cast<int>(stage), DType::bf16};
      const StepCost cost = dry_steps(world).front();
      row.units[stage] = static_cast<double>(cost.sent.sent) / 2 / (psi * (ranks - 1) / ranks);
      row.messages[stage] = cost.sent.messages;
      row.state[stage] = cost.at_rest.state();
    }
    rows.push_back(row);
  }
  return rows;
}

std::vector<StepTime> step_times(int ranks, const Cluster& cluster) {
  std::vector<StepTime> times;
  for (const auto& [stage, prefetch] :
       {std::pair{0, true}, {1, true}, {2, true}, {3, false}, {3, true}}) {
    World world{.ranks = ranks, .model = large_case(4), .rows = 512, .cluster = cluster};
    world.settings = {stage, DType::f32, prefetch};
    const auto seconds = [&](std::int64_t ranks_per_node) {
      world.cluster->ranks_per_node = ranks_per_node;
      double last = 0;
      for (const StepCost& cost : dry_steps(world)) last = std::max(last, cost.seconds);
      return last;
    };
    const char* how = stage < 3 ? "" : prefetch ? ", prefetch" : ", no prefetch";
    times.push_back({fmt::format("stage {}{}", stage, how), seconds(ranks), seconds(1)});
  }
  return times;
}

std::string weights_outside(int stage) {
  CommonOptions options;
  options.device = Device::Kind::meta;
  return world_results<std::string>(
             2, options,
             [&](Context& context) -> std::string {
               Trainer trainer(context.device, context.world, small_case(2), 1,
                               {stage, DType::f32});
               const Shard row{Buffer(context.device, Category::activation, 1, 8),
                               Buffer(context.device, Category::activation, 1, 1, DType::i64), 2};
               std::vector<Saved> saved;
               trainer.forward(row, saved);
               try {
                 trainer.weights(1);
               } catch (const Failure& failure) {
                 return failure.what();
               }
               return "";
             })
      .front();
}

std::vector<Fit> what_fits(World world) {
  const auto show = [](std::int64_t bytes) { return show_bytes(static_cast<double>(bytes)); };
  std::vector<Fit> fits;
  for (world.settings.stage = 0; world.settings.stage <= 3; ++world.settings.stage) {
    Fit fit{world.settings.stage, ""};
    try {
      const std::vector<StepCost> costs = dry_steps(world);
      std::int64_t rest = 0, peak = 0;
      for (const StepCost& cost : costs) {
        rest = std::max(rest, cost.at_rest.state());
        peak = std::max(peak, cost.peak.total);
      }
      fit.verdict = fmt::format("fits: {} of model state, {} at the peak", show(rest), show(peak));
    } catch (const OutOfMemory& error) {
      fit.verdict = error.what();
    }
    fits.push_back(fit);
  }
  return fits;
}

}  // namespace fivecuts::zero_redundancy
