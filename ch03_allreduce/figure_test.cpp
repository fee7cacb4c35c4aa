// Figure 3 from a run, and what it says of the notes' own.
#include "ch03_allreduce/report.hpp"
#include "ch03_allreduce/test_cases.hpp"
#include "common/comm/world.hpp"

namespace fivecuts::all_reduce {
namespace {

RingRun ring_of(int ranks) {
  return world_results<RingRun>(ranks, {}, [](Context& c) { return watch_ring(c, c.world); })
      .front();
}

// After step s, chunk r+s+1 on rank r is the sum of s+1 ranks from r on; then whole chunks follow.
ONE_RANK_TEST(Figure, EveryStepLeavesWhatTheInvariantSays) {
  for (int n = 2; n <= most_ranks_in_figure; ++n) {
    const RingRun run = ring_of(n);
    ASSERT_EQ(run.columns.size(), static_cast<std::size_t>(2 * n - 1));
    EXPECT_TRUE(run.one_each()) << n;
    for (int step = 1; step < n; ++step) {
      const Column& column = run.after(fmt::format("RS-{}", step));
      for (int r = 0; r < n; ++r) {
        const auto chunk = static_cast<std::size_t>((r + step + 1) % n);
        std::int64_t want = 0;
        for (int k = r; k <= r + step; ++k) want += std::int64_t{1} << (k % n);
        EXPECT_EQ(column.held[static_cast<std::size_t>(r)][chunk], want);
        const Column& gathered = run.after(fmt::format("AG-{}", step));
        for (int k = 0; k <= step; ++k) {
          const auto whole = static_cast<std::size_t>((r + k) % n);
          EXPECT_EQ(gathered.held[static_cast<std::size_t>(r)][whole], run.whole());
        }
        EXPECT_EQ(live_blocks(column, r).size(), static_cast<std::size_t>(n - step));
        EXPECT_EQ(live_blocks(gathered, r).size(), static_cast<std::size_t>(step + 1));
      }
    }
  }
}

RANK_TEST(Figure, OfTheRunsOwnRanks) {
  Context& context = test_context();
  if (context.size() < 2) return;
  const RingRun run = watch_ring(context, context.world);
  EXPECT_TRUE(run.one_each());
  for (const auto& of_rank : run.columns.back().held) {
    for (const std::int64_t held : of_rank) EXPECT_EQ(held, run.whole());
  }
}

// Of the run's own ranks wherever it can be; if not, the text and the picture say why.
ONE_RANK_TEST(Figure, SaysIfItIsNotOfTheRun) {
  const auto figure = [](int ranks, Device::Kind device) {
    CommonOptions options;
    options.device = device;
    return world_results<RingRun>(ranks, options, [](Context& c) { return figure_of(c, c.world); })
        .front();
  };
  const RingRun four = ring_of(4);
  for (const int n : {2, 3, 4, 5, 8}) {
    const RingRun own = figure(n, Device::Kind::cpu);
    EXPECT_EQ(own.ranks, n);
    EXPECT_EQ(figure3_svg(own).find("example"), std::string::npos);
    EXPECT_EQ(figure_text(own, four).find("an example: the run's") != std::string::npos, n > 4);
  }
  const std::pair<RingRun, const char*> examples[] = {
      {figure(1, Device::Kind::cpu), "an example: one rank has nothing to send"},
      {figure(9, Device::Kind::cpu), "an example: 9 ranks are too many to draw"},
      {figure(3, Device::Kind::meta), "an example: a dry run has no numbers"}};
  for (const auto& [example, why] : examples) {
    EXPECT_EQ(example.ranks, 4);
    EXPECT_NE(figure3_svg(example).find(why), std::string::npos) << why;
    EXPECT_NE(figure_text(example, four).find(why), std::string::npos) << why;
  }
}

ONE_RANK_TEST(Figure, TheNotesReduceScatterIsRightAndTheirAllGatherImpossible) {
  const RingRun run = ring_of(4);
  const std::vector<int> wrong = {0, 0, 0, 0, 3, 4, 0};
  for (std::size_t k = 0; k < wrong.size(); ++k) {
    EXPECT_EQ(wrong_cells(run, notes_figure()[k]), wrong[k]) << notes_figure()[k].name;
  }
  EXPECT_EQ(schedules(notes_figure()[3].cards, notes_figure()[4].cards), 0);
  EXPECT_EQ(schedules(notes_figure()[4].cards, notes_figure()[5].cards), 0);
  EXPECT_EQ(wrong_cells(the_other_way(run, 1), notes_figure()[4]), 1);
  EXPECT_EQ(wrong_cells(the_other_way(run, 2), notes_figure()[5]), 4);
  EXPECT_EQ(why_impossible(), (std::vector<std::string>{
                                  "in AG-1 GPU 1 must send twice, and GPU 3 nothing",
                                  "in AG-2 GPU 3 must send twice, and GPU 0 or GPU 1 nothing"}));
  const std::string text = figure_text(run, run);
  EXPECT_EQ(text.find("NO"), std::string::npos);
  EXPECT_NE(text.find("differ in 7 of 8"), std::string::npos) << text;
  EXPECT_NE(text.find("the other way round in 5 of 8"), std::string::npos) << text;
}

RANK_TEST(Figure, CountsSchedules) {
  const Blocks start = {{1}, {2}, {3}};
  EXPECT_EQ(schedules(start, {{1, 2}, {2, 3}, {3, 1}}), 1);
  EXPECT_EQ(schedules(start, {{1, 3}, {2, 1}, {3, 2}}), 1);     // the other direction
  EXPECT_EQ(schedules(start, {{1, 2}, {2, 3}, {3, 2}}), 0);     // two from one card
  EXPECT_EQ(schedules(start, {{1, 2}, {2, 3}, {3}}), 0);        // one gets nothing
  EXPECT_EQ(schedules(start, {{1, 2, 3}, {2, 3}, {3, 1}}), 0);  // one gets two
  EXPECT_EQ(schedules({{1, 2}, {1, 2}, {}}, {{1, 2}, {1, 2}, {1}}), 0);
  EXPECT_EQ(schedules({{1, 2}, {2, 3}, {3, 1}}, {{1, 2, 3}, {2, 3, 1}, {3, 1, 2}}), 2);
}

// What an all-gather leaves that goes to the right: the mirror image of the run's, which goes left.
ONE_RANK_TEST(Figure, TheOtherWayIsTheMirrorImage) {
  const RingRun run = ring_of(4);
  EXPECT_EQ(the_other_way(run, 0), held_after(run, "RS-3"));
  EXPECT_EQ(the_other_way(run, 1), (Blocks{{3, 4}, {1, 4}, {1, 2}, {2, 3}}));
  EXPECT_EQ(the_other_way(run, 2), (Blocks{{2, 3, 4}, {1, 3, 4}, {1, 2, 4}, {1, 2, 3}}));
  EXPECT_EQ(the_other_way(run, 3), held_after(run, "AG-3"));
  EXPECT_EQ(schedules(the_other_way(run, 0), the_other_way(run, 1)), 1);
}

RANK_TEST(Figure, NamesWhoHasTooMuchToSend) {
  const auto found = overload({{1}, {2}, {3}}, {{1, 2}, {2, 3}, {3, 2}});  // card 1 has 2 alone
  EXPECT_EQ(found.twice, Senders{1});
  EXPECT_EQ(found.nothing, Senders{0});
  const auto none = overload({{1}, {2}, {3}}, {{1, 2}, {2, 3}, {3, 1}});
  EXPECT_TRUE(none.twice.empty());
  EXPECT_TRUE(none.nothing.empty());
  EXPECT_TRUE(overload({{1}, {2}}, {{1}, {1, 2}}).twice.empty());  // one gets nothing
  EXPECT_TRUE(overload({{1}, {2}}, {{1}, {1, 2}}).nothing.empty());
}

ONE_RANK_TEST(Figure, NoticesAStepThatIsNone) {
  RingRun run = ring_of(3);
  run.columns[2].step[1].messages = 2;
  EXPECT_FALSE(run.one_each());
  run.columns[2].step[1].messages = 1;
  run.columns[2].step[1].received = 0;
  EXPECT_FALSE(run.one_each());
}

RANK_TEST(Figure, StaleIsWhatAnotherRankHasMoreOf) {
  const Column column{"", {{1, 3, 1}, {2, 2, 6}, {5, 4, 4}}, {}};
  EXPECT_TRUE(is_stale(column, 0, 0));   // rank 2 has 1 + 4
  EXPECT_FALSE(is_stale(column, 0, 1));  // 1 + 2
  EXPECT_FALSE(is_stale(column, 0, 2));  // 2 + 4 has nothing of rank 0
  EXPECT_FALSE(is_stale(column, 1, 0));
  EXPECT_TRUE(is_stale(column, 1, 1));
  EXPECT_EQ(live_blocks(column, 0), (std::vector<int>{1, 2}));  // block 3 is chunk 0
}

ONE_RANK_TEST(Figure, OfTheLessonIsDrawnFromARun) {
  EXPECT_TRUE(same_picture(figure3_svg(ring_of(4)), "ch03_allreduce/ring.svg"));
}

}  // namespace
}  // namespace fivecuts::all_reduce
