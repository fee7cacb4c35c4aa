// What the program measures and prints.
#include "ch03_allreduce/report.hpp"

#include <algorithm>
#include <iterator>
#include <sstream>

#include "ch03_allreduce/test_cases.hpp"
#include "common/comm/world.hpp"
#include "common/support/main.hpp"

namespace fivecuts::all_reduce {
namespace {

/// As the program has it: a cluster, and a device of either kind.
CommonOptions options_of(const char* cluster, Device::Kind device = Device::Kind::cpu) {
  CommonOptions options;
  options.cluster = load_cluster(cluster);
  options.device = device;
  return options;
}

template <class Which>
std::ptrdiff_t number_of(Which which) {
  return std::ranges::count_if(all_algorithms(), which);
}

RANK_TEST(Ladder, EveryAlgorithmIsGoldenInEveryType) {
  Context& context = test_context();
  for (const DType type : {DType::f32, DType::bf16, DType::i64}) {
    for (const Result result : {Result::sum, Result::average, Result::max}) {
      if (type == DType::i64 && result == Result::average) continue;
      for (const std::int64_t elements : {1, 1857}) {
        const Setting setting{elements, type, result, 0};
        const auto ladder = climb(context, context.world, setting);
        EXPECT_EQ(std::ssize(ladder), number_of([&](const NamedAlgorithm& one) {
                    return one.possible(context.world);
                  }));
        for (const LadderRow& row : ladder) {
          EXPECT_TRUE(row.result.ok) << row.result.text;
          EXPECT_EQ(row.distinct, 1) << row.algorithm->name;
          EXPECT_TRUE(row.by_formula) << row.algorithm->name;
        }
        EXPECT_TRUE(ladder_holds(ladder));
      }
    }
  }
}

// The test of the tester.
RANK_TEST(Ladder, HoldsOnlyIfAllOfItDoes) {
  Context& context = test_context();
  const auto ladder = climb(context, context.world, {});
  const auto spoilt = [&](const std::function<void(LadderRow&)>& spoil) {
    auto copy = ladder;
    spoil(copy[2]);
    return !ladder_holds(copy);
  };
  EXPECT_TRUE(spoilt([](LadderRow& row) { row.result.ok = false; }));
  EXPECT_TRUE(spoilt([](LadderRow& row) { row.distinct = 2; }));
  EXPECT_TRUE(spoilt([](LadderRow& row) { row.by_formula = false; }));
  Verdict off = compare(context.world, "ring", std::vector<float>{1, 2},
                        std::vector<double>{1, 2.1}, f32_tolerances.one_pass);
  EXPECT_FALSE(off.ok);
}

RANK_TEST(Ladder, WithPretendedNodes) {
  Context& context = test_context();
  for (int per_node = 1; per_node <= context.size(); ++per_node) {
    Setting setting;
    setting.ranks_per_node = per_node;
    EXPECT_TRUE(ladder_holds(climb(context, context.world, setting))) << per_node;
  }
}

ONE_RANK_TEST(Wire, OfTheWorldsIsByFormulaForUnevenSizes) {
  run_world(1, options_of("laptop"), [](Context& context) {
    for (const std::int64_t elements : {1, 7, 8970}) {
      Setting setting;
      setting.elements = elements;
      const auto rows = wire_of_worlds(context, setting);
      EXPECT_EQ(std::ssize(rows), 4 * number_of(&NamedAlgorithm::by_messages));
      for (const WireRow& row : rows) EXPECT_TRUE(row.by_formula) << row.algorithm->name;
      EXPECT_EQ(wire_table(rows, setting).find("DIFFER"), std::string::npos);
    }
  });
}

// Uneven chunks, so that none of a row's numbers is another's: columns that are swapped, or of
// another rank, show.
ONE_RANK_TEST(Wire, TableTellsSentFromReceivedAndTheRootFromOthers) {
  const std::vector<WireRow> rows = {
      {&algorithm("tree"), 3, {{40, 60, 0, 1}, {80, 20, 0, 1}, {20, 100, 0, 1}}, true},
      {&algorithm("ring"), 2, {{20, 20, 0, 1}, {20, 20, 0, 1}}, false}};
  Setting setting;
  setting.elements = 5;
  const std::string table = wire_table(rows, setting);
  std::istringstream lines(table);
  const auto words = [&] {
    std::string line;
    std::getline(lines, line);
    std::istringstream in(line);
    return std::vector<std::string>(std::istream_iterator<std::string>(in), {});
  };
  words();
  using Words = std::vector<std::string>;
  EXPECT_EQ(words(), (Words{"tree", "3", "2.000", "3.000", "4.000", "5.000", "7.000", "9.000"}));
  EXPECT_EQ(words(),
            (Words{"ring", "2", "1.000", "1.000", "1.000", "1.000", "2.000", "2.000", "DIFFER"}));
}

RANK_TEST(Reproducible, OnAllRanksAndInAllRunsButNotBetweenOrders) {
  Context& context = test_context();
  const Reproducibility found = reproduce(context, context.world, {});
  EXPECT_TRUE(is_reproducible(found));
  EXPECT_EQ(found.between_worlds, 4);
  EXPECT_EQ(found.algorithms, number_of([&](const NamedAlgorithm& one) {
              return !one.modelled() && one.possible(context.world);
            }));
  const int n = context.size();  // two numbers have one sum, in either order
  EXPECT_EQ(found.own_order > 1, n > 2);
  EXPECT_EQ(found.between_algorithms > 1, n > 2);
  EXPECT_EQ(found.between_buckets > 1, n > 2);
}

// --- time ---

// A message takes no slot, so there is nothing to compare, nor to draw.
ONE_RANK_TEST(Times, OfUnitAreNone) {
  run_world(1, options_of("unit"), [&](Context& context) {
    const Times times = time_all(context);
    EXPECT_TRUE(times.sweeps.empty() && times.crossings.empty());
    const std::string text = times_text(times, context);
    EXPECT_NE(text.find("no times to compare"), std::string::npos) << text;
    EXPECT_EQ(text.find("*"), std::string::npos) << text;
    EXPECT_NE(text.find("What decides"), std::string::npos) << text;
  });
}

// The lesson's plot.
ONE_RANK_TEST(Times, OfTheLessonAreDrawnFromARun) {
  run_world(1, options_of("h100"), [](Context& context) {
    const Times times = time_all(context);
    EXPECT_TRUE(times.by_formula());
    EXPECT_TRUE(
        same_picture(times_svg(times.sweeps, "All-reduce on h100"), "ch03_allreduce/times.svg"));
  });
}

// The cluster says how many ranks fit on a node, and no table says or times anything else.
ONE_RANK_TEST(Times, AreOfNodesThatTheClusterHas) {
  const auto titles = [](const char* cluster) {
    std::vector<std::string> all;
    run_world(1, options_of(cluster), [&](Context& context) {
      const Times times = time_all(context);
      EXPECT_TRUE(times.by_formula()) << cluster;
      EXPECT_FALSE(times_svg(times.sweeps, cluster).empty());
      for (const Sweep& sweep : times.sweeps) all.push_back(sweep.title);
      const std::string text = times_text(times, context);
      EXPECT_NE(text.find("Crossing points, " + all.front()), std::string::npos) << text;
    });
    return all;
  };
  using Titles = std::vector<std::string>;
  const std::string halves = "4 ranks, a tenth between two halves";
  EXPECT_EQ(titles("laptop"), (Titles{"4 ranks, one node", halves, "64 ranks, one node",
                                      "2 nodes of 4 ranks", "8 nodes of 8 ranks"}));
  EXPECT_EQ(titles("h100"),
            (Titles{"4 ranks, one node", halves, "8 nodes of 8 ranks", "2 nodes of 4 ranks"}));
  EXPECT_EQ(titles("slow"), (Titles{"4 ranks, a node each", halves, "64 ranks, a node each",
                                    "8 ranks, a node each"}));
}

// On `slow` every message crosses the network: nothing is faster than it.
ONE_RANK_TEST(Times, OfSlowUseItsNetworkAlone) {
  run_world(1, options_of("slow"), [](Context& context) {
    const Link& network = context.clock.cluster().inter_node;
    const Sweep sweep = sweep_sizes(context, on_nodes(context, 4)),
                halves = sweep_slow_halves(context, 4);
    for (std::size_t a = 0; a < sweep.algorithms.size(); ++a) {
      for (std::size_t k = 0; k < sweep.bytes.size(); ++k) {
        const double once =
            network.latency + static_cast<double>(sweep.bytes[k]) / network.bandwidth;
        EXPECT_GT(sweep.seconds[a][k], once) << sweep.algorithms[a]->name;
        EXPECT_GT(halves.seconds[a][k], sweep.seconds[a][k]) << sweep.algorithms[a]->name;
      }
    }
    EXPECT_EQ(layout(on_nodes(context, 8, 4)), "8 ranks, a node each");
  });
}

// alpha = 100, an element a second, N = 4: ring 600 + 6 ceil(D / 4), tree 400 + 4 D, full exchange
// 100 + 3 D, halving and doubling 400 + 2 (ceil(D / 2) + ceil(D / 4)).
ONE_RANK_TEST(Times, CrossWhereTheFormulasDo) {
  CommonOptions options;
  options.cluster = bare_links(100, 4);
  run_world(1, options, [](Context& context) {
    const auto all = crossings(context, 4);
    ASSERT_EQ(all.size(), 4u);
    EXPECT_EQ(all[0].bytes, 4 * 82);        // 726 against 728
    EXPECT_EQ(all[1].bytes, 4 * 2);         // 404 against 408: one element is cut in no halves
    EXPECT_EQ(all[2].bytes, std::nullopt);  // never
    EXPECT_EQ(all[3].bytes, 4 * 335);       // 1104 against 1105
  });
}

ONE_RANK_TEST(Times, TermsByThemselves) {
  run_world(1, options_of("laptop"), [](Context& context) {
    const Terms found = terms(context, 4);
    const double want[][4] = {{6, 42, 20, 2}, {3, 30, 40, 1},     {1.5, 15, 15, 6},
                              {4, 22, 10, 4}, {1.5, 10.5, 20, 4}, {1.5, 6, 10, 6}};
    ASSERT_EQ(found.rows.size(), std::size(want));
    for (std::size_t k = 0; k < std::size(want); ++k) {
      EXPECT_NEAR(found.rows[k].ports, want[k][0], 1e-9) << found.rows[k].algorithm->name;
      EXPECT_NEAR(found.rows[k].slow, want[k][1], 1e-9) << found.rows[k].algorithm->name;
      EXPECT_NEAR(found.rows[k].cable, want[k][2], 1e-9) << found.rows[k].algorithm->name;
      EXPECT_NEAR(found.rows[k].latencies, want[k][3], 1e-9) << found.rows[k].algorithm->name;
    }
  });
}

// On links of their own halving_doubling beats the ring between slow halves; on one cable, where
// each rank of a half sends a tensor across, the ring wins.
ONE_RANK_TEST(Times, OneCableTurnsTheOrderRound) {
  run_world(1, options_of("laptop"), [](Context& context) {
    for (const int ranks : {4, 64}) {
      const auto rows = terms(context, ranks).rows;
      const auto row = [&](const char* name) {
        return *std::ranges::find(rows, &algorithm(name), &Terms::Row::algorithm);
      };
      EXPECT_LT(row("halving_doubling").slow, row("ring").slow);
      EXPECT_GT(row("halving_doubling").cable, row("ring").cable);
      EXPECT_NEAR(row("halving_doubling").cable, 10 * ranks / 2, 1e-9);
      EXPECT_NEAR(row("hierarchical").cable, 10, 1e-9);
    }
  });
}

// --- claims ---

void expect_all_claims(const CommonOptions& options, int ranks, const Setting& setting) {
  const auto all = load_claims(source_folder() / "docs" / "claims.json");
  run_world(ranks, options, [&](Context& context) {
    const RingRun four = figure_of_four(context, figure_of(context, context.world));
    if (context.rank() > 0) return;
    ClaimRows rows(all);
    measure_claims(context, setting, four, rows);
    EXPECT_TRUE(rows.all_hold()) << rows.text("en");
    for (const Claim& claim : all) {
      EXPECT_EQ(rows.shows(claim.id), claim.shown_in == "ch03") << claim.id;
    }
  });
}

ONE_RANK_TEST(Claims, AllOfThisChapterAreShown) {
  for (const int ranks : {1, 2, 3, 4, 5, 8}) expect_all_claims(options_of("laptop"), ranks, {});
  Setting odd;
  odd.elements = 1;
  expect_all_claims(options_of("h100"), 3, odd);
}

ONE_RANK_TEST(Claims, TitleSaysWhoseTheyAre) {
  const auto title = [](int ranks) {
    return world_results<std::string>(ranks, options_of("laptop", Device::Kind::meta),
                                      [](Context& c) { return claims_title(c); })
        .front();
  };
  EXPECT_EQ(title(1), "Claims of the notes, with 4 ranks: one has nothing to send");
  EXPECT_EQ(title(3), "Claims of the notes");
  EXPECT_EQ(title(64), "Claims of the notes");
  EXPECT_EQ(title(65), "Claims of the notes, with 4 ranks: 65 would take long");
}

ONE_RANK_TEST(Claims, AllAreShownDryToo) {
  Setting large;
  large.elements = 7'000'000'000;
  expect_all_claims(options_of("h100", Device::Kind::meta), 6, large);
}

}  // namespace
}  // namespace fivecuts::all_reduce
