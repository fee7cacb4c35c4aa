// Each claim of the notes whose home is this chapter: the formula at the run's own number of ranks
// against what a ledger, the clock or a comparison says, in the notes' small case: four layers in
// bf16, Psi = 1,024 for N = 4.
#include <algorithm>

#include "ch07_zero/worlds.hpp"

namespace fivecuts::zero_redundancy {
namespace {

constexpr std::int64_t element = 2;  // bytes

struct Scene {
  const Context& run;
  const Digits& digits;
  const Figure8& figure;
  ClaimRows& rows;

  /// The run's own size; four ranks where it has one, or more than a dry world takes in a moment.
  int n() const { return run.size() >= 2 && run.size() <= 64 ? run.size() : 4; }
  double psi() const { return static_cast<double>(parameter_count(small_case(n()))); }
  /// (N-1)/N Psi: what every rank sends in a reduce-scatter or an all-gather of all layers.
  double unit() const { return psi() * (n() - 1) / n(); }

  std::vector<StepCost> steps(int stage, std::int64_t k = 1, bool prefetch = true) const {
    World world{.ranks = n(), .model = small_case(n()), .micro_batches = k, .rows = k};
    world.settings = {stage, DType::bf16, prefetch};
    return dry_steps(world);
  }
  /// Elements that each rank sends in a step.
  double sent(int stage, std::int64_t k = 1) const {
    return static_cast<double>(steps(stage, k).front().sent.sent) / element;
  }
  /// ... for one more micro-batch: for its forward and backward pass alone.
  double sent_for_another(int stage) const { return sent(stage, 2) - sent(stage, 1); }
};

/// f(context, trainer) on every rank of a dry world of the small case; what rank 0 returns.
template <class F>
double on_trainer(const Scene& s, int stage, const F& f) {
  CommonOptions options;
  options.device = Device::Kind::meta;
  return world_results<double>(s.n(), options,
                               [&](Context& context) {
                                 Trainer trainer(context.device, context.world, small_case(s.n()),
                                                 1, {stage, DType::bf16});
                                 return static_cast<double>(f(context, trainer));
                               })
      .front();
}

struct Forward {
  double elements = 0, collectives = 0, flops = 0;
};
/// What the forward pass of one row moves and computes.
Forward forward_pass(const Scene& s, int stage) {
  Forward result;
  const auto measure = [&](auto part) {
    return on_trainer(s, stage, [&](Context& context, Trainer& trainer) {
      const Shard row{Buffer(context.device, Category::activation, 1, 4 * s.n(), DType::bf16),
                      Buffer(context.device, Category::activation, 1, 1, DType::i64), s.n()};
      std::vector<Saved> saved;
      const double before = context.device.work().flops();
      trainer.forward(row, saved);
      return part(context.traffic.measured(), context.device.work().flops() - before);
    });
  };
  result.elements =
      measure([](Traffic t, double) { return static_cast<double>(t.sent) / element; });
  result.collectives =
      measure([](Traffic t, double) { return static_cast<double>(t.messages); }) / (s.n() - 1);
  result.flops = measure([](Traffic, double flops) { return flops; });
  return result;
}

// --- the same numbers ---

// Two epochs on the digits, on the cpu, at each stage: 20 steps.
void equal_bits(const Scene& s) {
  CommonOptions options;
  options.device = Device::Kind::cpu;
  std::vector<std::uint64_t> hashes;
  for (const int stage : {0, 1, 2, 3}) {
    const Setting setting{.training = {.batch = 144, .epochs = 2, .layers = 2, .width = 12},
                          .stage = stage};
    const auto of_ranks = world_results<std::uint64_t>(s.n(), options, [&](Context& context) {
      return train_alone(context, context.world, s.digits, setting).hash;
    });
    hashes.push_back(of_ranks.front());
  }
  s.rows.equal("C07.1", 4, static_cast<double>(std::ranges::count(hashes, hashes.front())),
               "stages end 20 steps with the bits of stage 0");
}

// --- what is held ---

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

// A whole layer with one owner has to be sent to everyone: the owner's port carries it all.
double owner_sends(const Scene& s) {
  CommonOptions options;
  options.device = Device::Kind::meta;
  const auto all = world_results<Traffic>(s.n(), options, [&](Context& context) {
    const std::int64_t count = parameter_count(small_case(s.n())) / 4;
    const Buffer layer(context.device, Category::parameter, 1, count, DType::bf16);
    for (int r = 1; r < context.size(); ++r) {
      if (context.rank() == 0) context.world.send(r, layer);
      if (context.rank() == r) context.world.receive(0, layer);
    }
    return context.traffic.measured();
  });
  return static_cast<double>(all.front().sent) / element;
}

// --- what is sent ---

void by_phase(const Scene& s) {
  const int n = s.n();
  const Forward at_1 = forward_pass(s, 1), at_2 = forward_pass(s, 2), at_3 = forward_pass(s, 3);
  const double gradients = s.sent_for_another(2), all = s.sent_for_another(3);
  s.rows.equal("C07.2", 0, at_1.elements + at_2.elements + s.sent_for_another(1),
               "elements of parameters in forward and backward at stages 1 and 2",
               fmt::format("{} at stage 3", all - gradients), all - gradients == 2 * s.unit());
  const double gathered = on_trainer(s, 3, [](Context& context, Trainer& trainer) {
    trainer.gather(0);
    trainer.release(0);
    return context.traffic.measured().sent / element;
  });
  const double owner = owner_sends(s);
  s.rows.equal("C07.5", s.unit() / 4, gathered, "elements from every rank for a layer",
               fmt::format("from one owner of it: {}", owner), owner == s.psi() / 4 * (n - 1));
  s.rows.equal("C07.6", s.unit(), at_3.elements, "elements in a forward pass",
               fmt::format("{} all-gathers", at_3.collectives), at_3.collectives == 4);
  s.rows.not_here("C07.7", "this program keeps all activations; recomputing them is not in it yet");
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
  CommonOptions options;
  options.device = Device::Kind::meta;
  const Traffic naive =
      world_results<Traffic>(s.n(), options, [&](Context& context) {
        all_reduce::Workspace work;
        for (const LayerShape& shape : small_case(s.n())) {
          const Buffer x(context.device, Category::gradient, 1, shape.parameters(), DType::bf16);
          all_reduce::ring(context.world, x, Reduction::sum, work);
          all_reduce::all_gather(context.world, x);
        }
        return context.traffic.measured();
      }).front();
  s.rows.equal("C07.12", 2 * s.unit(), zero_1, "elements in a step of stage 1",
               fmt::format("{} without it; {} by an all-reduce and an all-gather", zero_0,
                           naive.sent / element),
               zero_0 == zero_1 && static_cast<double>(naive.sent) / element == 3 * s.unit());
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

// --- figure 8 ---

constexpr std::size_t at_8 = 3;  // its N = 8

void figure_8(const Scene& s) {
  const auto gb = [&](std::size_t stage, std::size_t k) {
    return static_cast<double>(s.figure.bytes[stage][k]) / 1e9;
  };
  s.rows.equal(
      "C07.16", 26.25, gb(2, at_8), "GB at stage 2, N = 8",
      fmt::format("{} at stage 1, for {} and {} elements", gb(1, at_8), s.sent(2), s.sent(1)),
      gb(1, at_8) == 38.5 && s.sent(1) == s.sent(2));
  s.rows.equal("C07.17", 112, gb(0, at_8), "GB at stage 0 for every N", "",
               std::ranges::all_of(s.figure.bytes[0], [](auto b) { return b == 112'000'000'000; }));
  s.rows.equal("C07.18", 28 + 10.5, gb(1, at_8), "GB at stage 1, N = 8");
  s.rows.equal("C07.19", 14 + 12.25, gb(2, at_8), "GB at stage 2, N = 8");
  s.rows.equal("C07.20", 14, gb(3, at_8), "GB at stage 3, N = 8");
  int right = 0;
  for (std::size_t k = 0; k < Figure8::ranks.size(); ++k) {
    const double n = Figure8::ranks[k];
    const double want[] = {112, 28 + 84 / n, 14 + 98 / n, 112 / n};
    for (std::size_t stage = 0; stage < 4; ++stage) right += gb(stage, k) == want[stage] ? 1 : 0;
  }
  std::string paper;
  for (const std::int64_t bytes : s.figure.paper) {
    paper += fmt::format("{}{:.1f}", paper.empty() ? "" : ", ", static_cast<double>(bytes) / 1e9);
  }
  s.rows.equal("C07.21", 28, right, "of 28 values",
               fmt::format("7.5B and N = 64: {} GB, the paper's", paper),
               paper == "120.0, 31.4, 16.6, 1.9");
  const auto& from = s.figure.fits_from;
  const std::string crossings = fmt::format(
      "80 GB from N = {}, {}, {}; 24 GB: stage 1 {}, stage 2 from {}, stage 3 from {}", from[1][1],
      from[2][1], from[3][1], from[1][0] == 0 ? "never" : "at times", from[2][0], from[3][0]);
  s.rows.holds("C07.22",
               crossings ==
                   "80 GB from N = 2, 2, 2; 24 GB: stage 1 never, stage 2 from 10, stage 3 "
                   "from 5",
               crossings);
  const auto removed = [&](std::size_t k) { return 1 - gb(1, k) / gb(0, k); };
  s.rows.equal("C07.23", 0.75 * (1 - 1 / 4.0), removed(2), "removed at N = 4",
               fmt::format("{} at N = 2, {} at N = 8", removed(1), removed(at_8)),
               removed(1) == 0.375);
  s.rows.equal("C07.24", 0.65625, removed(at_8), "removed at N = 8",
               fmt::format("{:.4f} at N = 64", removed(6)), removed(6) < 0.75);
  s.rows.equal("C07.25", 2, from[1][1], "ranks of 80 GB hold 7B at stage 1",
               fmt::format("of 24 GB: {} at stage 2, {} at stage 3; one rank needs {} GB at any",
                           from[2][0], from[3][0], gb(3, 0)),
               gb(3, 0) == 112);
}

}  // namespace

void measure_claims(const Context& run, const Digits& digits, const Figure8& figure,
                    ClaimRows& rows) {
  const Scene scene{run, digits, figure, rows};
  equal_bits(scene);
  what_is_held(scene);
  by_phase(scene);
  by_stage(scene);
  by_layers(scene);
  by_micro_batches(scene);
  figure_8(scene);
  rows.not_here("C08.8",
                "SHARD_GRAD_OP, which keeps parameters until the backward pass, is not in it yet");
}

}  // namespace fivecuts::zero_redundancy
