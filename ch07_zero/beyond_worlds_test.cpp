// The tables of beyond/, of the price of each stage, and of other tools' rules.
#include <cmath>

#include "ch07_zero/beyond/comparison.hpp"
#include "ch07_zero/test_cases.hpp"

namespace fivecuts::zero_redundancy {
namespace {

const std::vector<BeyondRow>& rows() {
  static const std::vector<BeyondRow> all = beyond_rows(4, load_cluster("a100"), digits());
  return all;
}

const BeyondRow& named(const std::string& part) {
  const auto row = std::ranges::find_if(
      rows(), [&](const BeyondRow& r) { return r.name.find(part) != std::string::npos; });
  require(row != rows().end(), "no row of that name");
  return *row;
}

double slowest(const BeyondRow& row) {
  double seconds = 0;
  for (const StepCost& cost : row.ranks) seconds = std::max(seconds, cost.seconds);
  return seconds;
}

constexpr std::int64_t layer = 100'000'000, psi = 6 * layer;  // elements

ONE_RANK_TEST(BeyondTable, AllTrainToTheSame) {
  for (const BeyondRow& row : rows()) {
    EXPECT_TRUE(row.agrees()) << row.name;
    EXPECT_EQ(row.same_bits, !row.other_order) << row.name;
  }
  BeyondRow wrong = rows().back();
  wrong.apart = std::nan("");
  EXPECT_FALSE(wrong.agrees());
  wrong = rows().front();
  wrong.same_bits = false;
  EXPECT_FALSE(wrong.agrees());
  wrong = rows().front();
  wrong.states = 2;
  EXPECT_FALSE(wrong.agrees());
}

// Of 4 ranks on 2 nodes: a group is a node, and of the half that a rank owns it sends a half twice.
ONE_RANK_TEST(BeyondTable, GroupsKeepTheirBytesInside) {
  for (const StepCost& cost : named("groups").ranks) {
    EXPECT_EQ(cost.at_rest.state(), 16 * psi / 2);
    EXPECT_EQ(cost.sent.sent, 2 * (3 * psi / 2 + psi / 2));
    EXPECT_EQ(cost.sent.sent_inter_node, 2 * (psi / 2));
  }
  std::int64_t around = 0;
  for (const StepCost& cost : named("stage 3").ranks) around += cost.sent.sent_inter_node;
  EXPECT_EQ(around, 2 * 2 * (3 * psi * 3 / 4)) << "one rank of each node sends to the other";
  EXPECT_LT(slowest(named("groups")), slowest(named("stage 3")));
}

ONE_RANK_TEST(BeyondTable, HasTheLedgersAndTheClocksNumbers) {
  const StepCost& zero_3 = named("stage 3").ranks.front();
  const StepCost& kept = named("kept").ranks.front();
  EXPECT_EQ(zero_3.sent.sent, 2 * 3 * psi * 3 / 4);
  EXPECT_EQ(kept.sent.sent, 2 * 2 * psi * 3 / 4);
  EXPECT_EQ(kept.peak.parameter, 2 * (psi / 4 + psi));
  EXPECT_EQ(named("all-reduce").ranks.front().sent.sent, 2 * 3 * psi * 3 / 4);
  EXPECT_GT(slowest(named("all-reduce")), slowest(named("stage 1")));
  EXPECT_GT(slowest(named("owner")), slowest(named("stage 3")));
  const auto& owners = named("owner").ranks;
  for (std::size_t r = 0; r < owners.size(); ++r) {
    EXPECT_EQ(owners[r].at_rest.state(), 16 * layer * (r < 2 ? 2 : 1))
        << "layers 0 to 5 on 4 ranks";
  }
  EXPECT_GT(slowest(named("recomputed")), slowest(named("stage 3")));
  EXPECT_LT(named("recomputed").ranks.front().peak.activation, zero_3.peak.activation);
  const std::string text = beyond_text(rows(), load_cluster("a100"));
  EXPECT_NE(text.find("same bits"), std::string::npos);
  EXPECT_NE(text.find("within"), std::string::npos);
}

// 7B, N = 8, in elements; the notes' criterion, memory for traffic.
ONE_RANK_TEST(Value, SaysWhichStageIsNotBeaten) {
  World world{.ranks = 8, .model = large_case(70)};
  world.settings.precision = DType::bf16;
  const std::vector<ValueRow> all = value_rows(world);
  ASSERT_EQ(all.size(), 4u);
  constexpr std::int64_t million = 1'000'000, unit = 6125 * million;  // 7/8 of 7B
  for (std::size_t k = 0; k < ValueRow::micro_batches.size(); ++k) {
    const std::int64_t m = ValueRow::micro_batches[k];
    EXPECT_EQ(all[0].elements[k], 2 * unit);
    EXPECT_EQ(all[1].elements[k], 2 * unit);
    EXPECT_EQ(all[2].elements[k], (m + 1) * unit);
    EXPECT_EQ(all[3].elements[k], 3 * m * unit);
    EXPECT_TRUE(all[0].beaten(all, k));
    EXPECT_EQ(all[1].beaten(all, k), m == 1);
    EXPECT_FALSE(all[2].beaten(all, k));
    EXPECT_FALSE(all[3].beaten(all, k));
  }
  EXPECT_EQ(all[1].state, 38'500 * million);
  EXPECT_EQ(all[2].state, 26'250 * million);
  const std::string text = value_text(all);
  for (const char* part : {"38.5", "26.25", "2, 3", "1, 2, 3"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
}

// What their documents quote, and what the same rule comes to in buffers.
ONE_RANK_TEST(Conventions, AreWhatTheToolsSay) {
  const std::vector<Convention> all = conventions();
  constexpr std::int64_t count = 2'851'000'000, largest = 32'000'000;
  const std::vector<std::int64_t> held = {16 * count,
                                          18 * count,
                                          6 * count + 12 * count / 8,
                                          16 * count,
                                          8 * count + 8 * count / 8,
                                          2 * count + 16 * count / 8,
                                          2 * count + 16 * count / 8,
                                          18 * count / 8 + 4 * largest};
  ASSERT_EQ(all.size(), held.size());
  for (std::size_t i = 0; i < held.size(); ++i) {
    EXPECT_EQ(all[i].measured, held[i]) << all[i].name;
  }
  for (const std::size_t i : {0u, 1u, 2u, 3u, 4u, 7u}) {
    EXPECT_EQ(all[i].by_formula, static_cast<double>(all[i].measured)) << all[i].name;
  }
  const std::string text = conventions_text(all);
  for (const char* gib : {"15.93", "11.28", "6.09"}) {  // in DeepSpeed's documents and code
    EXPECT_NE(text.find(gib), std::string::npos) << gib;
  }
}

ONE_RANK_TEST(Padding, IsWhatFillsUpEachBucket) {
  const std::vector<std::int64_t> layers = {1430, 368, 17, 42};
  // Around a ring every element passes N - 1 times.
  const auto of = [](std::int64_t held, int n) { return Padding{held, held * (n - 1)}; };
  EXPECT_EQ(padding_of(layers, 3), of(1 + 1 + 1 + 0, 3));
  EXPECT_EQ(padding_of(layers, 4), of(2 + 0 + 3 + 2, 4));
  EXPECT_EQ(padding_of(layers, 5), of(0 + 2 + 3 + 3, 5));
  EXPECT_EQ(padding_of({1857}, 3), of(0, 3));
  EXPECT_EQ(padding_of({1857}, 4), of(3, 4));
  EXPECT_EQ(padding_of({1857}, 5), of(3, 5));
}

// Under one cap the digits' model runs out of memory at stages 0 and 1, and fits at 2 and 3, as 7B
// does on the notes' chart; and then no other stage than the run's own is tried.
ONE_RANK_TEST(Cap, LetsTheStagesPassThatFit) {
  CommonOptions options;
  options.device = Device::Kind::cpu;
  options.memory_cap = 134'000;
  for_stages({}, [&](const Settings& settings) {
    const Setting setting{.training = {.epochs = 1}, .stage = settings.stage};
    std::string sentence;
    try {
      run_world(4, options,
                [&](Context& context) { train_alone(context, context.world, digits(), setting); });
    } catch (const OutOfMemory& error) {
      sentence = error.what();
    }
    EXPECT_EQ(sentence.starts_with("out of memory: "), settings.stage <= 1) << sentence;
  });
  for (const bool capped : {true, false}) {
    CommonOptions dry;
    dry.device = Device::Kind::meta;
    dry.memory_cap = capped ? 134'000 : MemoryLedger::unlimited;
    run_world(4, dry, [&](Context& context) {
      const auto rows = climb(context, context.world, digits(), {.stage = 2}, {});
      EXPECT_EQ(rows.size(), capped ? 1u : 4u);
      EXPECT_EQ(rows.back().stage, capped ? 2 : 3);
    });
  }
}

}  // namespace
}  // namespace fivecuts::zero_redundancy
