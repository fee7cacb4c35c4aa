

#include "ch01_overview/experiments.hpp"
#include "ch01_overview/test_shapes.hpp"
#include "common/support/main.hpp"

namespace fivecuts::overview {
namespace {

const Recipe& mixed() { return all_recipes().front(); }

// --- bytes ---

// The ZeRO paper's table for 7.5B on 64 cards, and section 01's 7B: from ledgers.
RANK_TEST(Account, IsThatOfThePapers) {
  const ModelShape model = square_layers(75, 10000);
  const auto gigabytes = [&](int stage) {
    const Account a = hold_dry(model, zero_sharding(stage, model, 64, 0), mixed());
    return static_cast<double>(a.state()) / 1e9;
  };
  EXPECT_DOUBLE_EQ(gigabytes(0), 120);
  EXPECT_NEAR(gigabytes(1), 31.4, 0.05);
  EXPECT_NEAR(gigabytes(2), 16.6, 0.05);
  EXPECT_NEAR(gigabytes(3), 1.9, 0.05);
  const Account seven = hold_dry(square_layers(70, 10000), mixed());
  EXPECT_EQ(seven.parameter, 14'000'000'000);
  EXPECT_EQ(seven.gradient, 14'000'000'000);
  EXPECT_EQ(seven.optimizer, 84'000'000'000);
}

RANK_TEST(Account, OfTheRecipes) {
  const std::int64_t psi = 3 * 37 * 37;
  const std::int64_t bytes[3][3] = {{2, 2, 12}, {2, 4, 12}, {4, 4, 8}};
  for (std::size_t i = 0; i < 3; ++i) {
    const Account a = hold_dry(square_layers(3, 37), all_recipes()[i]);
    EXPECT_EQ(a.parameter, bytes[i][0] * psi);
    EXPECT_EQ(a.gradient, bytes[i][1] * psi);
    EXPECT_EQ(a.optimizer, bytes[i][2] * psi);
    EXPECT_EQ(a.activation, 0);
  }
}

RANK_TEST(Account, OverTheRanksOfEachCut) {
  const ModelShape dense = square_layers(6, 8, true);
  for (int n = 1; n <= 8; ++n) {
    for (const CutFacts& facts : all_cuts()) {
      const ModelShape model = cut_model(facts.cut, dense, 8 * n);
      std::int64_t p = 0, g = 0, o = 0;
      for (int r = 0; r < n; ++r) {
        const Account a = hold_dry(model, place(facts.cut, model, 8 * n, n, r), mixed());
        p += a.parameter, g += a.gradient, o += a.optimizer;
      }
      const auto want = [&](Part Holding::*kind, std::int64_t bytes) {
        std::int64_t sum = 0;
        for (std::size_t k = 0; k < model.size(); ++k) {
          for (std::int64_t i = 0; i < model[k].parameters(); ++i) {
            sum += bytes * copies(facts.cut, kind, model[k], k, i, 8 * n, n);
          }
        }
        return sum;
      };
      EXPECT_EQ(p, want(&Holding::parameters, 2)) << facts.name << " over " << n;
      EXPECT_EQ(g, want(&Holding::gradients, 2)) << facts.name << " over " << n;
      EXPECT_EQ(o, want(&Holding::optimizer, 12)) << facts.name << " over " << n;
    }
  }
}

// What is really there is what is counted, with a step too; and nothing of it stays.
RANK_TEST(Account, ReallyHeldIsWhatIsCounted) {
  Context& context = test_context();
  const ModelShape model = square_layers(3, 33);
  const Placement all = data_parallel(model, 1, 0);
  for (const Recipe& recipe : all_recipes()) {
    const Account held = hold(context.device, model, all, recipe, 17);
    const Account dry = hold_dry(model, all, recipe, 17);
    EXPECT_EQ(held.parameter, dry.parameter);
    EXPECT_EQ(held.gradient, dry.gradient);
    EXPECT_EQ(held.optimizer, dry.optimizer);
    EXPECT_EQ(held.activation, dry.activation);
    EXPECT_EQ(context.memory.live(), 0);
  }
}

RANK_TEST(Account, ActivationsFollowTheBatchAndModelStateDoesNot) {
  for (const Recipe& recipe : all_recipes()) {
    const ModelShape model = square_layers(4, 50);
    const Account one = hold_dry(model, recipe, 1);
    for (const std::int64_t rows : {2, 3, 1857}) {
      const Account more = hold_dry(model, recipe, rows);
      EXPECT_EQ(more.activation, rows * one.activation);
      EXPECT_EQ(more.state(), one.state());
    }
  }
}

RANK_TEST(Account, ABatchPassesTheOptimizerStateAndNoneBefore) {
  for (const ModelShape& model : {square_layers(1, 1), square_layers(1, 100), square_layers(5, 33),
                                  square_layers(70, 10000)}) {
    for (const Recipe& recipe : all_recipes()) {
      const std::int64_t rows = batch_that_passes(model, recipe);
      const Account there = hold_dry(model, recipe, rows);
      EXPECT_GT(there.activation, there.optimizer);
      if (rows == 1) continue;
      const Account before = hold_dry(model, recipe, rows - 1);
      EXPECT_LE(before.activation, before.optimizer);
    }
  }
}

/// The sentence that f() ends with.
template <class F>
std::string refusal(F f) {
  try {
    f();
  } catch (const OutOfMemory& error) {
    return error.what();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "(it was not refused)";
}

RANK_TEST(Memory, ACardOfEightyGigabytesFailsWhereAFrameworkDoes) {
  const ModelShape model = square_layers(70, 10000);
  const auto on_card = [&](const Placement& placement, std::int64_t rows = 0) {
    return refusal([&] { hold_dry(model, placement, mixed(), rows, 80'000'000'000); });
  };
  EXPECT_EQ(on_card(data_parallel(model, 1, 0)),
            "out of memory: 400 MB for optimizer is 400 MB more than fits under --memory 80 GB (in "
            "use: parameter 14 GB, gradient 14 GB, optimizer 52 GB)");
  for (const Cut cut : {Cut::pipeline, Cut::tensor, Cut::zero1, Cut::zero2, Cut::zero3}) {
    EXPECT_EQ(on_card(place(cut, model, 0, 2, 0)), "(it was not refused)") << name_of(cut);
  }
}

RANK_TEST(Memory, TheSameWhereItIsReallyAllocated) {
  MemoryLedger ledger(1'000'000);
  Device cpu(ledger);
  const ModelShape model = square_layers(10, 100);
  const std::string sentence =
      refusal([&] { hold(cpu, model, data_parallel(model, 1, 0), mixed()); });
  EXPECT_NE(sentence.find("for optimizer is"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("parameter 200 KB, gradient 200 KB"), std::string::npos) << sentence;
  EXPECT_EQ(ledger.live(), 0);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__linux__)
// 25 million parameters in bf16: the process takes what the ledger says, within a tenth.
RANK_TEST(Memory, RealMemoryFollowsTheLedger) {
  Context& context = test_context();
  if (context.size() > 1 || !context.device.on_host()) return;
  const ModelShape model = square_layers(1, 5000);
  const std::int64_t before = resident_bytes();
  const ModelState state(context.device, data_parallel(model, 1, 0), mixed());
  const double real = static_cast<double>(resident_bytes() - before);
  EXPECT_EQ(context.memory.model_state(), 400'000'000);
  EXPECT_NEAR(real / 4e8, 1.0, 0.1) << "resident " << real;
}
#endif

// --- the program ---

RANK_TEST(Options, ImpossibleOnesAreRefused) {
  const auto said = [](const Options& o) { return refusal([&] { settled(o, test_context()); }); };
  const auto expect = [&](const Options& o, const std::string& words) {
    EXPECT_NE(said(o).find(words), std::string::npos) << said(o);
  };
  expect({.layers = 3, .parts = 4}, "3 layers leave some of 4 pipeline stages empty");
  expect({.width = 3, .scale = 1, .parts = 4}, "matrices of 3 columns leave some of 4 ranks");
  expect({.parts = 4, .experts = 6}, "--experts 6 cannot be shared out to 4 ranks");
  expect({.width = 6, .scale = 1, .parts = 4}, "none for some of 8 experts");
  expect({.width = 10, .scale = 11}, "--scale 10 at most");
  expect({.scale = 1}, "would really take about 112 GB");
  expect({}, "(it was not refused)");
}

RANK_TEST(Options, AreSettledByTheRanks) {
  const int n = test_context().size();
  const Options o = settled({}, test_context());
  EXPECT_EQ(o.parts, n == 1 ? 4 : n);
  EXPECT_EQ(o.experts, 2 * o.parts);
  const Options cut = settled({.parts = 4, .cut = Cut::expert}, test_context());
  EXPECT_EQ(cut.experts % 4, 0);
  EXPECT_EQ(cut.experts % n, 0);
}

RANK_TEST(Program, TheRanksHoldTheirSliceOfAnyCut) {
  Context& context = test_context();
  for (const CutFacts& facts : all_cuts()) {
    const Options o = settled({.layers = 8, .width = 1000, .scale = 20, .cut = facts.cut}, context);
    const auto rows = accounts(context, o);
    ASSERT_EQ(rows.size(), 4u);
    EXPECT_TRUE(rows[0].allocated);
    EXPECT_FALSE(rows[1].allocated);
    EXPECT_EQ(rows[0].account.activation > 0, facts.cut == Cut::data);
    EXPECT_EQ(context.memory.live(), 0);
  }
}

// Dry: a world of its own for --device meta.
RANK_TEST(Program, OnAMetaDeviceNothingIsHeld) {
  Context& context = test_context();
  if (context.rank() > 0) return;
  MemoryLedger ledger;
  Device meta(ledger, Device::Kind::meta);
  const ModelShape model = square_layers(3, 10000);
  const Account a = hold(meta, model, data_parallel(model, 1, 0), mixed(), 8);
  EXPECT_EQ(a.state(), 16 * parameter_count(model));
  EXPECT_GT(a.activation, 0);
}

RANK_TEST(Program, TheMapHasARowForEachRankOfEachCut) {
  for (const std::int64_t parts : {1, 2, 7}) {
    const Options o = settled({.layers = 9, .width = 700, .parts = parts}, test_context());
    const auto map = placement_map(o);
    EXPECT_EQ(map.size(), all_cuts().size() * static_cast<std::size_t>(parts));
    EXPECT_NE(map_table(o, map).find("zero3"), std::string::npos);
    EXPECT_NE(cut_table(o, map).find("bubble"), std::string::npos);
  }
}

// A group for each card of each cut, whatever the shape; the same run gives the same bytes.
RANK_TEST(Figure, HasACardForEachRankOfEachCut) {
  for (const Options& chosen : {Options{.parts = 1}, Options{.parts = 4}, Options{.parts = 11},
                                Options{.layers = 2, .width = 200, .scale = 1, .parts = 2},
                                Options{.layers = 1, .width = 7, .scale = 1, .parts = 1}}) {
    const Options o = settled(chosen, test_context());
    const auto map = placement_map(o);
    const std::string svg = map_svg(o, map);
    std::size_t cards = 0;
    for (std::size_t at = svg.find("<g>"); at != std::string::npos; at = svg.find("<g>", at + 1)) {
      ++cards;
    }
    EXPECT_EQ(cards, map.size());
    EXPECT_EQ(svg.find("nan"), std::string::npos);
    EXPECT_EQ(svg, map_svg(o, placement_map(o)));
  }
}

ONE_RANK_TEST(Figure, OfTheLessonIsDrawnFromARun) {
  Options o;
  o.parts = 4;
  o = settled(o, test_context());
  EXPECT_TRUE(same_picture(map_svg(o, placement_map(o)), "ch01_overview/map.svg"));
}

RANK_TEST(Claims, AllOfThisChapterAreShown) {
  const auto all = load_claims(source_folder() / "docs" / "claims.json");
  ClaimRows rows(all);
  measure_claims(settled({}, test_context()), rows);
  EXPECT_TRUE(rows.all_hold()) << rows.text("en");
  const std::string others = elsewhere(all);
  for (const Claim& claim : all) {
    EXPECT_EQ(rows.shows(claim.id), claim.shown_in == "ch01") << claim.id;
    const bool other = claim.chapter == "ch01" && claim.shown_in != "ch01";
    EXPECT_EQ((others + ",").find(claim.id + ",") != std::string::npos ||
                  others.find(claim.id + "\n") != std::string::npos,
              other)
        << claim.id;
  }
}

}  // namespace
}  // namespace fivecuts::overview
