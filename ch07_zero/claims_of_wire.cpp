// Claims about what goes over the wire.
#include <algorithm>
#include <cmath>

#include "ch07_zero/beyond/beyond.hpp"
#include "ch07_zero/claim_scene.hpp"

namespace fivecuts::zero_redundancy {
namespace {

void by_phase(const Scene& s) {
  const int n = s.n();
  const Forward at_1 = forward_pass(s, 1), at_2 = forward_pass(s, 2), at_3 = forward_pass(s, 3);
  const double gradients = s.sent_for_another(2), all = s.sent_for_another(3);
  s.rows.equal("C07.2", 0, at_1.elements + at_2.elements + s.sent_for_another(1) + (gradients - s.unit()),
               "elements of parameters in forward and backward at stages 1 and 2",
               fmt::format("{} at stage 3", all - gradients), all - gradients == 2 * s.unit());
  const double gathered = on_trainer(s, 3, [](Context& context, Trainer& trainer) {
    trainer.gather(0);
    trainer.release(0);
    return context.traffic.measured().sent / element;
  });
  // Layer 0 lies on rank 0: its port carries all of it.
  const double owner = on_trainer(
      s, 3,
      [](Context& context, Trainer& trainer) {
        trainer.gather(0);
        trainer.release(0);
        return context.traffic.measured().sent / element;
      },
      make_trainer<OneOwner>);
  s.rows.equal("C07.5", s.unit() / 4, gathered, "elements from every rank for a layer",
               fmt::format("from one owner of it: {}", owner), owner == s.psi() / 4 * (n - 1));
  s.rows.equal("C07.6", s.unit(), at_3.elements, "elements in a forward pass",
               fmt::format("{} all-gathers", at_3.collectives), at_3.collectives == 4);
  s.rows.equal("C07.9", s.unit(), all - gradients - at_3.elements,
               "elements of parameters in a backward pass");
  double moments = 0;
  for (const StepCost& cost : s.steps(2))
    moments += static_cast<double>(cost.at_rest.optimizer) / 12;
  s.rows.equal("C07.10", s.unit(), gradients, "elements of gradients",
               fmt::format("{} of each moment in the job", moments), moments == s.psi());
}

void by_stage(const Scene& s) {
  const double zero_0 = s.sent(0), zero_1 = s.sent(1), zero_2 = s.sent(2), zero_3 = s.sent(3);
  s.rows.equal("C07.11", 2 * s.unit(), zero_1, "elements in a step of stage 1");
  const double naive = s.sent_by(make_trainer<AllReduceAndGather>, 1);
  s.rows.equal("C07.12", 2 * s.unit(), zero_1, "elements in a step of stage 1",
               fmt::format("{} without it; {} by an all-reduce and an all-gather", zero_0, naive),
               zero_0 == zero_1 && naive == 3 * s.unit());
  const auto collectives = static_cast<double>(s.steps(3).front().sent.messages) / (s.n() - 1);
  s.rows.equal("C07.13", 3 * s.unit(), zero_3, "elements in a step of stage 3",
               fmt::format("{} collectives for 4 layers", collectives), collectives == 12);
  s.rows.equal("C07.26", 0, zero_2 - zero_0, "elements more at stage 2 than without ZeRO",
               fmt::format("with 4 micro-batches {} more", s.sent(2, 4) - s.sent(0, 4)),
               s.sent(2, 4) == 5 * s.unit());
  s.rows.equal(
      "C07.27", 1.5, zero_3 / zero_2, "times the elements of stage 2",
      [&] {
        const auto times = step_times(s.n(), s.run.clock.cluster());
        return fmt::format("a step takes {:.4g} of stage 0's time, with prefetch {:.4g}",
                           times[3].inside / times[0].inside, times[4].inside / times[0].inside);
      }(),
      collectives == 12);
}

void by_layers(const Scene& s) {
  std::string seen;
  double least = 1e300, most = 0;
  bool messages = true;
  for (const int layers : {1, 2, 4, 8}) {
    // As many parameters however many layers: wide and narrow ones in turn where it takes that.
    ModelShape model;
    const int side = 4 * s.n();
    const std::int64_t in = layers == 1 ? 2 * side : side;
    const std::int64_t out = layers == 1 || layers == 4 ? in : layers == 2 ? 2 * side : side / 2;
    for (int k = 0; k < layers; ++k) {
      model.push_back({k % 2 == 0 ? in : out, k % 2 == 0 ? out : in, false});
    }
    World world{.ranks = s.n(), .model = model, .settings = {3, DType::bf16}};
    const Traffic t = dry_steps(world).front().sent;
    const double elements = static_cast<double>(t.sent) / element;
    least = std::min(least, elements);
    most = std::max(most, elements);
    messages = messages && t.messages == 3 * layers * (s.n() - 1);
    seen += fmt::format("{}{}", seen.empty() ? "" : ", ", t.messages / (s.n() - 1));
  }
  s.rows.equal("C07.14", 3 * s.unit(), most, "elements at stage 3 with 1, 2, 4 and 8 layers",
               seen + " collectives", messages && least == most);
}

void by_micro_batches(const Scene& s) {
  bool right = true;
  std::string seen;
  for (const WireRow& row : wire_rows(s.n())) {
    const auto k = static_cast<double>(row.micro_batches);
    const std::array<double, 4> want = {2, 2, k + 1, 3 * k};
    for (std::size_t stage = 0; stage < 4; ++stage) {
      right = right && std::abs(row.units[stage] - want[stage]) < 1e-9;
    }
    seen +=
        fmt::format("{}k = {}: {:.4g}", seen.empty() ? "" : "; ", k, fmt::join(row.units, ", "));
  }
  s.rows.holds("C07.15", right, seen + " times (N-1)/N·Ψ for stages 0 to 3");
}

// FSDP's two strategies.
void full_shard(const Scene& s) {
  const double kept = s.sent_by(make_trainer<KeptParameters>, 3);
  const StepCost full = s.steps(3).front(),
                 keeps = s.steps_of(make_trainer<KeptParameters>, 3).front();
  s.rows.equal("C08.8", 3 * s.unit(), s.sent(3), "elements in a step of stage 3, FULL_SHARD",
               fmt::format("SHARD_GRAD_OP: {}, and {} B of parameters at its peak for {}", kept,
                           keeps.peak.parameter, full.peak.parameter),
               kept == 2 * s.unit());
}

}  // namespace

void claims_of_wire(const Scene& s) {
  by_phase(s);
  by_stage(s);
  by_layers(s);
  by_micro_batches(s);
  full_shard(s);
}

}  // namespace fivecuts::zero_redundancy
