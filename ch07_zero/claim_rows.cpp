// Each claim of the notes whose home is this chapter: the formula at the run's own number of ranks
// against what a ledger, the clock or a comparison says.
#include <algorithm>

#include "ch07_zero/claim_scene.hpp"

namespace fivecuts::zero_redundancy {

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

namespace {

constexpr std::size_t at_8 = 3;  // its N = 8

void figure_8(const Scene& s) {
  const auto gb = [&](std::size_t stage, std::size_t k) {
    return static_cast<double>(s.figure.bytes[stage][k]) / 1e9;
  };
  s.rows.equal(
      "C07.16", 26.25, gb(2, at_8), "GB at stage 2, N = 8",
      fmt::format("{} at stage 1, for {} and {} elements; with 4 micro-batches for {} and {}",
                  gb(1, at_8), s.sent(2), s.sent(1), s.sent(2, 4), s.sent(1, 4)),
      gb(1, at_8) == 38.5 && s.sent(1) == s.sent(2) && s.sent(1, 4) < s.sent(2, 4));
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
  const auto& from = s.figure.at_rest_from;
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
               fmt::format("of 24 GB: {} at stage 2, {} at stage 3, and for a step {} and {}; one "
                           "rank needs {} GB at any",
                           from[2][0], from[3][0], s.figure.step_from[2][0],
                           s.figure.step_from[3][0], gb(3, 0)),
               gb(3, 0) == 112);
}

}  // namespace

void measure_claims(const Context& run, const Digits& digits, const Figure8& figure,
                    ClaimRows& rows) {
  const Scene scene{run, digits, figure, rows};
  claims_of_state(scene);
  claims_of_wire(scene);
  figure_8(scene);
}

}  // namespace fivecuts::zero_redundancy
