// Figure 7: the order of what happens to a layer, and the bytes that it has meanwhile.
#include <algorithm>
#include <map>

#include "ch07_zero/live_memory.hpp"
#include "ch07_zero/test_cases.hpp"

namespace fivecuts::zero_redundancy {
namespace {

Figure7 drawn(int stage, bool prefetch, std::int64_t layers = 3) {
  World world{
      .ranks = 4, .model = large_case(layers), .rows = 256, .cluster = load_cluster("a100")};
  world.settings = {stage, DType::bf16, prefetch};
  return figure7(world);
}

std::string order(const Figure7& figure) {
  std::string text;
  for (const Moment& moment : figure.moments) {
    if (!moment.what.empty()) text += moment.what + "\n";
  }
  return text;
}

std::int64_t most(const Figure7& figure, std::size_t category) {
  std::int64_t largest = 0;
  for (const Moment& moment : figure.moments) {
    largest = std::max(largest, moment.live[category]);
  }
  return largest;
}

constexpr const char* of_one_layer =
    "at rest\n"
    "gather 1\nall-gather 1\nforward 1\nrelease 1\n"
    "gather 1\nall-gather 1\nbackward 1\nrelease 1\n"
    "gradient 1\nweight gradient 1\nreduce-scatter 1\nlet go 1\n"
    "update 1\n";

RANK_TEST(Figure7, ShowsTheLifeOfALayer) {
  if (test_context().rank() > 0) return;
  EXPECT_EQ(order(drawn(3, false, 1)), of_one_layer);
  EXPECT_EQ(order(drawn(3, true, 1)), of_one_layer);  // there is no next layer
  EXPECT_TRUE(
      order(drawn(3, true)).starts_with("at rest\ngather 1\nall-gather 1\ngather 2\nforward 1\n"))
      << "the second layer is on its way before the first is computed";
  EXPECT_EQ(order(drawn(2, true, 1)),
            "at rest\nforward 1\nbackward 1\ngradient 1\nweight gradient 1\nreduce-scatter 1\n"
            "let go 1\nupdate 1\nall-gather 1\n");
  EXPECT_EQ(order(drawn(0, true, 1)),
            "at rest\nforward 1\nbackward 1\nweight gradient 1\nall-reduce 1\nupdate 1\n");
}

// In the order of the layers, and then in the reverse order; each is whole twice.
RANK_TEST(Figure7, NamesTheLayers) {
  if (test_context().rank() > 0) return;
  for (const bool prefetch : {true, false}) {
    const Figure7 figure = drawn(3, prefetch);
    std::map<std::string, std::string> layers;
    for (const Moment& moment : figure.moments) {
      const std::string& what = moment.what;
      layers[what.substr(0, what.rfind(' '))] += what.substr(what.rfind(' ') + 1);
    }
    for (const char* twice : {"gather", "all-gather", "release"})
      EXPECT_EQ(layers[twice], "123321");
    for (const char* up : {"forward", "update"}) EXPECT_EQ(layers[up], "123");
    for (const char* down :
         {"backward", "gradient", "weight gradient", "reduce-scatter", "let go"}) {
      EXPECT_EQ(layers[down], "321") << down;
    }
    for (const char* row : {"layer 1", "layer 2", "layer 3"}) {
      const auto of_row = [&](const Bar& bar) { return bar.row == row && bar.end > bar.start; };
      EXPECT_EQ(std::ranges::count_if(figure.bars, of_row), 3) << row;
    }
    for (const char* label : {">layer 1<", ">forward<", ">reduce-scatter<", ">all-gather<"}) {
      EXPECT_NE(figure7_svg(figure).find(label), std::string::npos) << label;
    }
  }
}

// Layers of 200 MB, a quarter of each kept.
RANK_TEST(Figure7, HasTheLedgersBytes) {
  if (test_context().rank() > 0) return;
  constexpr std::int64_t mb = 1'000'000;
  EXPECT_EQ(most(drawn(3, false), 0), 150 * mb + 200 * mb);
  EXPECT_EQ(most(drawn(3, true), 0), 150 * mb + 400 * mb);
  EXPECT_EQ(most(drawn(2, true), 0), 600 * mb);
  EXPECT_EQ(most(drawn(2, true), 1), 150 * mb + 200 * mb);
  const Figure7 figure = drawn(3, true);
  for (const std::size_t category : {0u, 1u, 2u}) {
    EXPECT_EQ(figure.moments.back().live[category], figure.moments.front().live[category]);
  }
  EXPECT_GT(most(figure, 3), figure.moments.back().live[3]) << "activations come and go";
}

RANK_TEST(Figure7, IsDrawnFromThem) {
  if (test_context().rank() > 0) return;
  const Figure7 figure = drawn(3, true);
  EXPECT_NE(figure7_svg(figure), figure7_svg(drawn(3, false)));
  EXPECT_NE(figure7_svg(figure), figure7_svg(drawn(2, true)));
  EXPECT_NE(figure7_text(figure), figure7_text(drawn(3, false)));
  EXPECT_NE(figure7_svg(figure).find("stage 3, 4 ranks"), std::string::npos);
  EXPECT_NE(figure7_text(figure).find("at rest"), std::string::npos);
}

RANK_TEST(Figure7, OfTheLessonIsDrawnFromARun) {
  if (test_context().rank() > 0) return;
  World world{.ranks = 4, .model = large_case(3), .rows = 4096, .cluster = load_cluster("h100")};
  world.settings = {3, DType::bf16};
  EXPECT_TRUE(same_picture(figure7_svg(figure7(world)), "ch07_zero/step.svg"));
}

}  // namespace
}  // namespace fivecuts::zero_redundancy
