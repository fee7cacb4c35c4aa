#include <unistd.h>

#include <fstream>

#include "ch01_overview/experiments.hpp"
#include "common/support/main.hpp"
#include "common/support/test_main.hpp"

namespace fivecuts::overview {
namespace {

constexpr DType bf16 = DType::bf16;
const Recipe& mixed() { return all_recipes().front(); }

ModelShape square_layers(std::int64_t layers, std::int64_t width, bool bias = false) {
  return mlp_shape(width, width, width, static_cast<int>(layers), bias);
}

std::vector<std::int64_t> awkward(int n) { return {0, 1, n - 1, n, n + 1, 1000, 1857}; }

// --- slices ---

/// How often each element of each layer is held, over all ranks, in one kind of state.
std::vector<std::vector<int>> times_held(Cut cut, const ModelShape& model, int experts, int n,
                                         Part Holding::*kind) {
  std::vector<std::vector<int>> times;
  for (const LayerShape& layer : model) {
    times.emplace_back(static_cast<std::size_t>(layer.parameters()));
  }
  for (int r = 0; r < n; ++r) {
    for (const Holding& h : place(cut, model, experts, n, r)) {
      const LayerShape whole = model[h.layer], block = layer_of(model, h);
      const Part part = h.*kind;
      for (std::int64_t i = part.first; i < part.first + part.count; ++i) {
        const bool bias = i >= block.in * block.out;
        const std::int64_t row = bias ? whole.in : h.rows.first + i / block.out;
        const std::int64_t col = h.cols.first + i % block.out;
        ++times[h.layer].at(static_cast<std::size_t>(row * whole.out + col));
      }
    }
  }
  return times;
}

/// How often an element has to be held, by what the cut copies.
int copies(Cut cut, Part Holding::*kind, const LayerShape& layer, std::size_t number,
           std::int64_t element, int experts, int n) {
  const bool bias = element >= layer.in * layer.out;
  switch (cut) {
    case Cut::data:
      return n;
    case Cut::pipeline:
      return 1;
    case Cut::tensor:
      return bias && number % 2 == 1 ? n : 1;
    case Cut::expert:
      return number % (static_cast<std::size_t>(experts) + 1) == 0 ? n : 1;
    case Cut::zero1:
      return kind == &Holding::optimizer ? 1 : n;
    case Cut::zero2:
      return kind == &Holding::parameters ? n : 1;
    case Cut::zero3:
      return 1;
  }
  return -1;
}

TEST(Slices, CoverEachElementAsOftenAsTheCutSays) {
  for (int n = 1; n <= 8; ++n) {
    for (const ModelShape& dense : {square_layers(5, 9, true), square_layers(3, 1),
                                    mlp_shape(7, 12, 2, 4), square_layers(1, n + 1)}) {
      for (const CutFacts& facts : all_cuts()) {
        const int experts = 2 * n;
        const ModelShape model = cut_model(facts.cut, dense, experts);
        for (Part Holding::*kind :
             {&Holding::parameters, &Holding::gradients, &Holding::optimizer}) {
          const auto times = times_held(facts.cut, model, experts, n, kind);
          int wrong = 0;
          for (std::size_t k = 0; k < model.size(); ++k) {
            for (std::int64_t i = 0; i < model[k].parameters(); ++i) {
              const int want = copies(facts.cut, kind, model[k], k, i, experts, n);
              wrong += times[k][static_cast<std::size_t>(i)] == want ? 0 : 1;
            }
          }
          EXPECT_EQ(wrong, 0) << facts.name << " over " << n;
        }
      }
    }
  }
}

// Contiguous parts in the order of the ranks, none lost, at sizes that no N divides and below N.
TEST(Slices, FollowOneAnotherAtAnySize) {
  for (int n = 1; n <= 8; ++n) {
    for (const std::int64_t size : awkward(n)) {
      const ModelShape deep = square_layers(size, 2), wide = square_layers(2, size);
      std::size_t layer = 0;
      std::int64_t col = 0, row = 0, element = 0;
      for (int r = 0; r < n; ++r) {
        for (const Holding& h : pipeline_parallel(deep, n, r)) EXPECT_EQ(h.layer, layer++);
        const Placement tensor = tensor_parallel(wide, n, r);
        ASSERT_EQ(tensor.size(), 2u);
        EXPECT_EQ(tensor[0].cols.first, col);
        EXPECT_EQ(tensor[1].rows.first, row);
        col += tensor[0].cols.count;
        row += tensor[1].rows.count;
        const Part flat = zero_sharding(3, wide, n, r).front().parameters;
        EXPECT_EQ(flat.first, element);
        element += flat.count;
      }
      EXPECT_EQ(layer, deep.size());
      EXPECT_EQ(col, size);
      EXPECT_EQ(row, size);
      EXPECT_EQ(element, size * size);
    }
  }
}

TEST(Slices, OfAPairFitTogether) {
  const ModelShape pair = square_layers(2, 10);
  for (int r = 0; r < 3; ++r) {  // what the first gives is what the second takes
    const Placement placement = tensor_parallel(pair, 3, r);
    EXPECT_EQ(placement[0].cols.first, placement[1].rows.first);
    EXPECT_EQ(placement[0].cols.count, placement[1].rows.count);
  }
}

TEST(Slices, ExpertsAreAsLargeAsTheLayerTheyComeFrom) {
  const ModelShape moe = moe_of(square_layers(3, 10, true), 4);
  ASSERT_EQ(moe.size(), 15u);
  std::int64_t routers = 0;
  for (std::size_t k = 0; k < moe.size(); k += 5) routers += moe[k].parameters();
  EXPECT_EQ(routers, 3 * 10 * 4);
  EXPECT_EQ(parameter_count(moe) - routers, parameter_count(square_layers(3, 10, true)));
  EXPECT_THROW(expert_parallel(moe, 4, 3, 0), Failure);
  EXPECT_EQ(expert_parallel(moe, 4, 4, 3).size(), 6u);  // 3 routers, 3 experts
}

TEST(Slices, RanksThatThereAreNotFail) {
  EXPECT_THROW(pipeline_parallel(square_layers(3, 2), 3, 3), Failure);
  EXPECT_THROW(tensor_parallel(square_layers(3, 2), 3, -1), Failure);
  EXPECT_THROW(zero_sharding(4, square_layers(3, 2), 3, 0), Failure);
}

TEST(Slices, RowsOfTheBatchAreCutWhereReplicasShareTheWork) {
  for (const CutFacts& facts : all_cuts()) {
    std::int64_t all = 0;
    for (int r = 0; r < 3; ++r) all += batch_rows(facts.cut, 10, 3, r).count;
    const bool model_shared = facts.cut == Cut::pipeline || facts.cut == Cut::tensor;
    EXPECT_EQ(all, model_shared ? 30 : 10) << facts.name;
  }
}

// --- bytes ---

// The ZeRO paper's table for 7.5B on 64 cards, and section 01's 7B: from ledgers.
TEST(Account, IsThatOfThePapers) {
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

TEST(Account, OfTheRecipes) {
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

TEST(Account, OverTheRanksOfEachCut) {
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
    const std::int64_t rows = computes(context.device, recipe) ? 17 : 0;
    const Account held = hold(context.device, model, all, recipe, rows);
    const Account dry = hold_dry(model, all, recipe, rows);
    EXPECT_EQ(held.parameter, dry.parameter);
    EXPECT_EQ(held.gradient, dry.gradient);
    EXPECT_EQ(held.optimizer, dry.optimizer);
    EXPECT_EQ(held.activation, dry.activation);
    EXPECT_EQ(context.memory.live(), 0);
  }
}

TEST(Account, ActivationsFollowTheBatchAndModelStateDoesNot) {
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

TEST(Account, ABatchPassesTheOptimizerStateAndNoneBefore) {
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

TEST(Memory, ACardOfEightyGigabytesFailsWhereAFrameworkDoes) {
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

TEST(Memory, TheSameWhereItIsReallyAllocated) {
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
std::int64_t resident_bytes() {
  std::int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// 25 million parameters in bf16: the process takes what the ledger says, within a tenth.
RANK_TEST(Memory, RealMemoryFollowsTheLedger) {
  Context& context = test_context();
  if (context.size() > 1) return;
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
    ASSERT_EQ(rows.size(), 5u);
    EXPECT_TRUE(rows[0].allocated);
    EXPECT_FALSE(rows[2].allocated);
    EXPECT_EQ(rows[1].account.activation > 0, facts.cut == Cut::data);
    EXPECT_EQ(context.memory.live(), 0);
  }
}

// Dry: a world of its own for --device meta, and bf16 has its step there.
RANK_TEST(Program, OnAMetaDeviceNothingIsHeld) {
  Context& context = test_context();
  if (context.rank() > 0) return;
  MemoryLedger ledger;
  Device meta(ledger, Device::Kind::meta);
  EXPECT_TRUE(computes(meta, mixed()));
  const ModelShape model = square_layers(3, 10000);
  const Account a = hold(meta, model, data_parallel(model, 1, 0), mixed(), 8);
  EXPECT_EQ(a.state(), 16 * parameter_count(model));
  EXPECT_GT(a.activation, 0);
  EXPECT_EQ(size_of(bf16), 2);
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

RANK_TEST(Figure, APathThatCannotBeWrittenIsRefusedOnEveryRank) {
  Context& context = test_context();
  EXPECT_FALSE(figure_file(context, {}).has_value());
  Options o;
  o.figure = "/there/is/no/such/folder/map.svg";
  const std::string said = refusal([&] { figure_file(context, o); });
  EXPECT_NE(said.find("the folder '/there/is/no/such/folder' does not exist"), std::string::npos)
      << said;
  o.figure = "/";
  EXPECT_NE(refusal([&] { figure_file(context, o); }).find("it is a folder"), std::string::npos);
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
