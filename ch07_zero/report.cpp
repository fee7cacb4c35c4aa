#include "ch07_zero/report.hpp"

#include <algorithm>

#include "ch07_zero/beyond/comparison.hpp"
#include "common/observe/table.hpp"
#include "common/support/units.hpp"

namespace fivecuts::zero_redundancy {
namespace {

std::string show(std::int64_t bytes) { return show_bytes(static_cast<double>(bytes)); }

/// Prints each epoch, and does what `files` ask for.
TrainingHooks hooks_of(Context& context, Communicator& dp, const Setting& setting,
                       const TrainingFiles& files) {
  TrainingHooks hooks;
  if (files.resume) {
    hooks.start = [&](Trainer& trainer) {
      const std::int64_t steps = resume_and_say(context, dp, setting, *files.resume, trainer);
      if (files.save && *files.save != *files.resume) {
        save_and_say(context, dp, setting, *files.save, trainer, steps);
      }
      return steps;
    };
  }
  hooks.epoch = [&](const Trainer& trainer, std::int64_t steps, const Epoch& e) {
    context.say("  {:5}  {:.4f}   {:.4f}   {:6.2f} %  {:6.2f} %\n", e.number, e.loss, e.golden_loss,
                100 * e.accuracy, 100 * e.golden_accuracy);
    if (files.save) save_and_say(context, dp, setting, *files.save, trainer, steps);
  };
  hooks.end = [&](const Trainer& trainer, std::int64_t) {
    if (files.weights) export_and_say(context, dp, *files.weights, trainer);
  };
  return hooks;
}

}  // namespace

bool training_follows_golden(Context& context, Communicator& dp, const Digits& digits,
                             const Setting& setting, const TrainingFiles& files,
                             TrainingResult& result) {
  context.say("Training on {} digits, {} held out, stage {}{}\n", digits.train.count(),
              digits.test.count(), setting.stage,
              setting.clip > 0 ? fmt::format(", gradients clipped at {}", setting.clip) : "");
  context.say("  epoch  loss     golden   accuracy  golden\n");
  result = train(context, dp, digits, setting, hooks_of(context, dp, setting, files));
  if (setting.clip > 0) {
    context.say("clipped: {} of {} steps\n", result.clipped, result.steps - result.resumed);
  }
  const bool to_the_end = data_parallel::follows_to_the_end(setting.training);
  const std::int64_t early =
      std::min(result.steps, std::max(result.resumed, data_parallel::early_steps));
  const bool judged = to_the_end || early <= data_parallel::early_steps;
  context.say("golden, after {} steps: {}\n", early,
              judged ? result.early.text : "not judged, too far from where golden began");
  if (!to_the_end) {
    context.say(
        "golden, at the end: not judged, since with these options rounding grows too far\n\n");
    return result.early.ok || !judged;
  }
  context.say("golden, at the end: {}\ngolden, all epochs: {}\n\n", result.weights.text,
              result.loss.text);
  return result.early.ok && result.weights.ok && result.loss.ok;
}

std::string stage_table(const std::vector<StageRow>& rows) {
  Table table({"stage", "parameters", "gradients", "optimizer", "at rest", "peak parameters",
               "peak gradients", "peak of all", "all ranks send", "messages", "state"});
  for (const StageRow& row : rows) {
    const auto most = [&](auto bytes) {
      std::int64_t largest = 0;
      for (const StepCost& cost : row.ranks) largest = std::max<std::int64_t>(largest, bytes(cost));
      return show(largest);
    };
    std::int64_t sent = 0, messages = 0;
    for (const StepCost& cost : row.ranks) {
      sent += cost.sent.sent;
      messages += cost.sent.messages;
    }
    table.row(
        {std::to_string(row.stage), most([](const StepCost& c) { return c.at_rest.parameter; }),
         most([](const StepCost& c) { return c.at_rest.gradient; }),
         most([](const StepCost& c) { return c.at_rest.optimizer; }),
         most([](const StepCost& c) { return c.at_rest.state(); }),
         most([](const StepCost& c) { return c.peak.parameter; }),
         most([](const StepCost& c) { return c.peak.gradient; }),
         most([](const StepCost& c) { return c.peak.total; }), std::to_string(sent),
         std::to_string(messages), row.replicas == 0 ? "dry" : fmt::format("{:016x}", row.hash)});
  }
  return table.text();
}

std::string states_text(const Setting& setting) {
  if (setting.training.micro_batches == 1) return "  expected: one state, bit for bit\n";
  return "  expected: one state at stages 0 and 1, one at 2 and 3, where ranks are added up before "
         "micro-batches and not\n  after: sums of floats in another order have other last bits\n";
}

bool show_what_leaks(const Context& context, int stage) {
  const std::string said = weights_outside(stage);
  if (stage < 3) return said.empty();  // the weights lie there whole, all the time
  context.say(
      "What stage 3 leaks: the weights of the second layer, read after its forward pass\n  {}\n\n",
      said.substr(0, said.rfind(" (")));  // without the place in the source
  return !said.empty();
}

namespace {

std::string fits_text(const std::vector<Fit>& fits) {
  std::string text;
  for (const auto& [stage, verdict] : fits) text += fmt::format("  stage {}: {}\n", stage, verdict);
  return text;
}

}  // namespace

void show_worlds_of(const Context& context, const Setting& setting) {
  const int ranks = context.size() >= 2 && context.size() <= 64 ? context.size() : 4;
  context.say(
      "Sent by a rank in a step of k micro-batches, in units of (N-1)/N Ψ; four layers, N = "
      "{}\n{}\n",
      ranks, wire_text(wire_rows(ranks), ranks));
  World world{.ranks = 8, .model = large_case(70), .rows = 1};
  world.settings = {0, DType::bf16, setting.prefetch};
  context.say(
      "Which stage is worth its price: 7B in bf16 on 8 ranks, and 1e9 elements that a rank sends "
      "in a step of\nk micro-batches; not beaten: no other holds less and sends no more, or the "
      "reverse\n{}\n",
      value_text(value_rows(world)));
  for (const std::int64_t cap : Figure8::caps) {
    world.cap = cap;
    context.say("7B in bf16 on 8 ranks of {}, dry, a step of one row\n{}\n", show(cap),
                fits_text(what_fits(world)));
  }
  const Cluster& cluster = context.clock.cluster();
  context.say(
      "A step on the virtual cluster '{}': 4 layers of 10,000 x 10,000 in fp32, 512 rows a rank, "
      "dry\n{}\n",
      cluster.name, times_text(step_times(ranks, cluster), ranks, cluster));
}

bool show_beyond(const Context& context, const Digits& digits) {
  const int n = context.size();
  const int ranks = n >= 4 && n <= 16 && n % 2 == 0 ? n : 4;
  const Cluster& cluster = context.clock.cluster();
  const std::vector<BeyondRow> rows = beyond_rows(ranks, cluster, digits);
  context.say(
      "Beyond: {} ranks on 2 nodes of '{}', 6 layers of 10,000 x 10,000 in bf16, 512 rows a rank, "
      "dry: what the\nfullest rank holds at rest and at its peaks, and the busiest sends, in units "
      "of "
      "(N-1)/N Ψ; and 20 steps on the\ndigits beside stage 0\n{}\n",
      ranks, cluster.name, beyond_text(rows, cluster));
  const std::vector<std::int64_t> layers = {1430, 368, 17, 42};
  std::string filled;
  for (const int of : {3, 4, 5}) {
    const Padding cut = padding_of(layers, of), whole = padding_of({1857}, of);
    filled += fmt::format("  N = {}: layers of {}: {} and {}; one bucket: {} and {}\n", of,
                          fmt::join(layers, ", "), cut.held, cut.sent, whole.held, whole.sent);
  }
  context.say(
      "Padding of 1,857 parameters, where a library's collective has parts of one size: elements "
      "that "
      "each rank\nholds (workspace, no model state), and that all ranks send for it in a "
      "reduce-scatter (modelled); chunks of\nthis chapter's ring differ by one element and need "
      "none\n{}\n",
      filled);
  context.say(
      "The same memory by other rules: T5-3B, Ψ = 2,851 M in layers of 32 M at most, d = {} "
      "GPUs\n{}\n",
      8, conventions_text(conventions()));
  return std::ranges::all_of(rows, [](const BeyondRow& row) { return row.agrees(); });
}

World step_of_figure7(const Context& context, const Setting& setting) {
  World world{.ranks = context.size() >= 2 && context.size() <= 16 ? context.size() : 4,
              .model = large_case(3),
              .rows = 4096,
              .cluster = context.clock.cluster()};
  world.settings = {setting.stage, DType::bf16, setting.prefetch};
  return world;
}

}  // namespace fivecuts::zero_redundancy
