// The dry worlds: figure 8, the wire, what fits, times; and the claims.
#include "ch07_zero/worlds.hpp"
#include "ch07_zero/test_cases.hpp"
#include "common/support/main.hpp"

namespace fivecuts::zero_redundancy {
namespace {

const Figure8& drawn() {
  static const Figure8 figure = figure8();
  return figure;
}

// The notes' and the paper's numbers, to the byte.
RANK_TEST(Worlds, Figure8IsTheNotes) {
  if (test_context().rank() > 0) return;
  for (std::size_t k = 0; k < Figure8::ranks.size(); ++k) {
    const std::int64_t n = Figure8::ranks[k], gb = 1'000'000'000;
    EXPECT_EQ(drawn().bytes[0][k], 112 * gb);
    EXPECT_EQ(drawn().bytes[1][k], 28 * gb + 84 * gb / n);
    EXPECT_EQ(drawn().bytes[2][k], 14 * gb + 98 * gb / n);
    EXPECT_EQ(drawn().bytes[3][k], 112 * gb / n);
  }
  using From = std::array<std::array<int, 2>, 4>;
  EXPECT_EQ(drawn().at_rest_from, (From{{{0, 0}, {0, 2}, {10, 2}, {5, 2}}}));
  EXPECT_EQ(drawn().step_from, (From{{{0, 0}, {0, 2}, {11, 2}, {5, 2}}}));
  const std::string text = figure8_text(drawn()), svg = figure8_svg(drawn());
  for (const char* number :
       {"38.5", "26.25", "17.0625", "1.75", "31.4", "16.6", "from 10", "from 11"}) {
    EXPECT_NE(text.find(number), std::string::npos) << number;
  }
  for (const char* tip : {"stage 1, N = 8: 38.5 GB", "stage 3, N = 64: 1.75 GB", "24 GB card"}) {
    EXPECT_NE(svg.find(tip), std::string::npos) << tip;
  }
  EXPECT_TRUE(same_picture(svg, "ch07_zero/state.svg")) << "the lesson's";
  Figure8 other = drawn();
  other.bytes[1][3] -= 500'000'000;
  EXPECT_NE(figure8_svg(other), svg);
  EXPECT_NE(figure8_text(other).find(" 38 "), std::string::npos);
}

// At stage 3 it fits; below, the sentence says what did not.
RANK_TEST(Worlds, SayWhatFits) {
  if (test_context().rank() > 0) return;
  World world{.ranks = 8, .model = large_case(70), .cap = 24'000'000'000};
  world.settings.precision = DType::bf16;
  const std::vector<Fit> fits = what_fits(world);
  for (const std::size_t stage : {0u, 1u, 2u}) {
    EXPECT_TRUE(fits[stage].verdict.starts_with("out of memory: 200 MB for "))
        << fits[stage].verdict;
    EXPECT_NE(fits[stage].verdict.find("under --memory 24 GB"), std::string::npos);
  }
  EXPECT_TRUE(fits[3].verdict.starts_with("fits: 14 GB of model state, ")) << fits[3].verdict;
}

RANK_TEST(Worlds, TheWeightsOfStage3AreNotReadOutside) {
  if (test_context().rank() > 0) return;
  for (const int stage : {0, 1, 2}) EXPECT_EQ(weights_outside(stage), "");
  EXPECT_TRUE(weights_outside(3).starts_with("the weights of layer 1 are not whole here: "));
}

// A cap that holds what is kept and not what a step needs: refused in the middle of a step, by some
// ranks while others wait for them.
RANK_TEST(Worlds, MayFitAtRestAndNotInAStep) {
  if (test_context().rank() > 0) return;
  for (const bool prefetch : {true, false}) {
    World world{.ranks = 3, .model = large_case(4), .settings = {3, DType::bf16, prefetch}};
    world.cap = dry_state(world).value() + 150'000'000;
    EXPECT_TRUE(dry_state(world).has_value());
    EXPECT_TRUE(what_fits(world)[3].verdict.starts_with("out of memory: 200 MB for parameter"));
  }
}

// Where messages are slow, a higher stage is slower, and prefetch hides most of that; where they
// are fast, the update of a shard alone makes up for it.
RANK_TEST(Worlds, AHigherStageIsNotAlwaysSlower) {
  if (test_context().rank() > 0) return;
  for (const char* cluster : {"laptop", "a100"}) {
    const std::vector<StepTime> t = step_times(4, load_cluster(cluster));
    ASSERT_EQ(t.size(), 5u);
    EXPECT_LT(t[1].inside, t[0].inside);
    EXPECT_LT(t[4].inside, t[3].inside);
    EXPECT_LT(t[4].across, t[3].across);
    EXPECT_GT(t[3].across, 1.2 * t[0].across) << cluster;
  }
}

RANK_TEST(Claims, AllOfThisChapterAreShown) {
  if (test_context().rank() > 0) return;
  const auto all = load_claims(source_folder() / "docs" / "claims.json");
  ClaimRows rows(all);
  measure_claims(test_context(), digits(), drawn(), rows);
  EXPECT_TRUE(rows.all_hold()) << rows.text("en");
  for (const Claim& claim : all) {
    EXPECT_EQ(rows.shows(claim.id), claim.shown_in == "ch07") << claim.id;
  }
}

}  // namespace
}  // namespace fivecuts::zero_redundancy
