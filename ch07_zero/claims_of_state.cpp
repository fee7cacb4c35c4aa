// Claims about what the ranks hold, and that all of it trains to the same.
#include <algorithm>

#include "ch07_zero/beyond/beyond.hpp"
#include "ch07_zero/claim_scene.hpp"

namespace fivecuts::zero_redundancy {
namespace {

// Two epochs on the digits, on the cpu: 20 steps.
std::uint64_t trained(const Scene& s, int stage, const Make& make = make_trainer<>) {
  CommonOptions options;
  options.device = Device::Kind::cpu;
  const Setting setting{.training = {.batch = 144, .epochs = 2, .layers = 2, .width = 12},
                        .stage = stage};
  return world_results<std::uint64_t>(
             s.n(), options,
             [&](Context& context) {
               return train_alone(context, context.world, s.digits, setting, make).hash;
             })
      .front();
}

void equal_bits(const Scene& s) {
  std::vector<std::uint64_t> hashes;
  for (const int stage : {0, 1, 2, 3}) hashes.push_back(trained(s, stage));
  s.rows.equal("C07.1", 4, static_cast<double>(std::ranges::count(hashes, hashes.front())),
               "stages end 20 steps with the bits of stage 0");
}

void what_is_held(const Scene& s) {
  const int n = s.n();
  const double held = static_cast<double>(s.steps(3).front().at_rest.parameter) / element;
  const double kept = static_cast<double>(s.steps(2).front().at_rest.parameter) / element;
  const double flops_0 = forward_pass(s, 0).flops, flops_3 = forward_pass(s, 3).flops;
  s.rows.equal(
      "C01.14", s.psi() / n, held, "parameters on a rank at stage 3",
      fmt::format("{} at stage 2; a forward pass computes {} and {} flops", kept, flops_3, flops_0),
      kept == s.psi() && flops_0 == flops_3);

  double together = 0;
  for (const StepCost& cost : s.steps(0)) together += static_cast<double>(cost.at_rest.state());
  const double once = static_cast<double>(s.steps(0).front().at_rest.state());
  s.rows.equal("C07.3", (n - 1) * 16 * s.psi(), together - once, "B are copies",
               fmt::format("of {} B", together));

  const double of_layer = on_trainer(s, 3, [](Context&, Trainer& trainer) {
    return trainer.layers()[0].parameters.tensor().count();
  });
  s.rows.equal("C07.4", s.psi() / 4 / n, of_layer, "elements of each layer on a rank",
               fmt::format("of {}", s.psi() / 4));

  const StepCost plain = s.steps(3, 1, false).front();
  const double low = static_cast<double>(plain.at_rest.parameter);
  const double fetched = on_trainer(s, 3, [](Context& context, Trainer& trainer) {
    trainer.gather(0);
    trainer.release(0);
    return context.traffic.measured().received;
  });
  s.rows.equal(
      "C07.8", 2 * s.psi() / n + 2 * s.psi() / 4 * (n - 1) / n, low + fetched,
      "B of different parameters at the peak",
      fmt::format("{} B between; the ledger's peak is {} B, as the gathered layer holds "
                  "the own shard once more",
                  low, plain.peak.parameter),
      low == 2 * s.psi() / n && static_cast<double>(plain.peak.parameter) == low + 2 * s.psi() / 4);
}

/// Bytes of activations at the end of the forward pass of one row, beside the row.
double kept_activations(const Scene& s, const Make& make) {
  return on_trainer(
      s, 3,
      [&](Context& context, Trainer& trainer) {
        const Shard row{Buffer(context.device, Category::activation, 1, 4 * s.n(), DType::bf16),
                        Buffer(context.device, Category::activation, 1, 1, DType::i64), s.n()};
        const std::int64_t before = context.memory.live(Category::activation);
        std::vector<Saved> saved;
        trainer.forward(row, saved);
        return context.memory.live(Category::activation) - before;
      },
      make);
}

// Of 70 layers, whose matrix products are nearly all there is to compute.
void recomputation(const Scene& s) {
  World world{.ranks = 1, .model = large_case(70), .settings = {3, DType::bf16}, .rows = 512};
  const double plain = dry_steps(world).front().flops;
  world.make = make_trainer<Recomputation>;
  const double more = dry_steps(world).front().flops / plain - 1;
  const bool same_bits = trained(s, 3, world.make) == trained(s, 3);
  s.rows.equal("C07.7", 4.0 * 4 * s.n() * element, kept_activations(s, world.make),
               "B of activations stay, a layer's output each",
               fmt::format("{} B without recomputation; {:.1f} % more flops at 7B, {} bits",
                           kept_activations(s, make_trainer<>), 100 * more,
                           same_bits ? "the same" : "OTHER"),
               same_bits && more > 0.32 && more < 0.35);
}

}  // namespace

void claims_of_state(const Scene& s) {
  equal_bits(s);
  what_is_held(s);
  recomputation(s);
}

}  // namespace fivecuts::zero_redundancy
