// The timeline in the terminal, and what all drawings of it share.
#include <algorithm>
#include <set>
#include <sstream>

#include "common/observe/gantt.hpp"
#include "common/observe/table.hpp"
#include "common/observe/time_axis.hpp"
#include "common/observe/timeline_svg.hpp"
#include "common/tests/figure_checks.hpp"
#include "common/tests/helpers.hpp"

namespace fivecuts {
namespace {

using Kind = Event::Kind;

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

ONE_RANK_TEST(FigureGantt, ShowsWhatARunDid) {
  const Timeline run{
      "two ranks",
      {{work("forward 1", 0, 1e-3), work("forward 2", 1e-3, 2e-3), work("backward", 2e-3, 4e-3),
        event_of(Kind::collective, Lane::comm, "all_reduce", 3e-3, 5e-3, 1e-3)},
       {event_of(Kind::message, Lane::compute, "exchange", 0, 2e-3, 1e-3)}}};
  EXPECT_EQ(gantt(run, 60),
            "  two ranks\n"
            "          |0              |2 ms           |4 ms     computes\n"
            "  rank 0 |F1FFFFFFF2FFFFFFBBBBBBBBBBBBBBBB        | 80%\n"
            "    comm |                        ........########|\n"
            "  rank 1 |........========                        | 0%\n"
            "  F forward  B backward  # all_reduce  = exchange  . waiting\n"
            "  total 5 ms\n");
}

ONE_RANK_TEST(FigureGantt, NeverExceedsTheWidth) {
  for (const std::vector<Timeline>& input : all_inputs()) {
    for (const Timeline& timeline : input) {
      for (const int width : {-1, 0, 40, 41, 77, 100, 300}) {
        const std::string text = gantt(timeline, width);
        for (const std::string& line : lines_of(text))
          EXPECT_LE(display_width(line), std::max(40, width)) << text;
        EXPECT_EQ(text, gantt(timeline, width));
      }
    }
  }
}

ONE_RANK_TEST(FigureGantt, ShortEventsDoNotVanishSilently) {
  const auto row = [](const std::vector<Event>& events) {
    const std::string text = gantt({"", {events}}, 100);
    return lines_of(text).at(2) + lines_of(text).at(lines_of(text).size() - 2);
  };
  // Alone in its cell, though it covers a thousandth of it.
  EXPECT_TRUE(has(row({work("short", 0, 1e-5), work("long", 0.5, 1)}), "|S   ")) << row({});
  EXPECT_FALSE(has(row({work("short", 0, 1e-5), work("long", 0.5, 1)}), "too short"));
  EXPECT_TRUE(
      has(row({work("first", 0, 0.1), work("short", 0.7, 0.7), work("long", 0.8, 1)}), " S "));
  // Beside one that covers more of the cell.
  EXPECT_TRUE(
      has(row({work("short", 0, 1e-5), work("long", 1e-5, 1)}), "too short to be shown: 1 event"));
}

ONE_RANK_TEST(FigureGantt, CellsGoToTheEventThatCoversMost) {
  // 80 cells for one second.
  const auto letters = [](const std::vector<Event>& events, char letter) {
    const std::string row = lines_of(gantt({"", {events}}, 100)).at(2);
    return std::count(row.begin(), row.end(), letter);
  };
  const auto shared = [&](double cells) {
    return letters({work("x", 0, cells / 80), work("y", cells / 80, 1)}, 'X');
  };
  EXPECT_EQ(shared(10.3), 10);
  EXPECT_EQ(shared(10.7), 11);
  const auto alone = [&](double cells) {
    return letters({work("x", 0, cells / 80), work("y", 1, 1)}, 'X');
  };
  EXPECT_EQ(alone(10.4), 10) << "more than half of the last cell is idle";
  EXPECT_EQ(alone(10.6), 11);
}

ONE_RANK_TEST(FigureTimeline, ComputesWhileItDoesNotWait) {
  const std::vector<Event> events = {work("a", 0, 2),
                                     event_of(Kind::compute, Lane::compute, "b", 2, 4, 1.5),
                                     event_of(Kind::message, Lane::compute, "c", 4, 8),
                                     event_of(Kind::compute, Lane::comm, "d", 0, 10)};
  EXPECT_EQ(computing_share(events, {0, 10}), 0.25);
  EXPECT_EQ(computing_share(events, {5, 5}), 0);
}

ONE_RANK_TEST(FigureGantt, ManyRanksAreCut) {
  const std::string many = gantt(iteration(64)), few = gantt(iteration(16));
  EXPECT_TRUE(has(many, "... 54 ranks (8 to 61) left out")) << many;
  EXPECT_TRUE(has(many, "rank 7 ") && has(many, "rank 62") && has(many, "rank 63")) << many;
  EXPECT_FALSE(has(many, "rank 8 ") || has(many, "rank 61")) << many;
  EXPECT_FALSE(has(few, "left out"));
  EXPECT_TRUE(has(few, "rank 15"));
  EXPECT_TRUE(has(gantt(iteration(17)), "... 7 ranks (8 to 14) left out"));
}

ONE_RANK_TEST(FigureLegend, GivesEachSortItsOwnSymbol) {
  const auto message = [](const char* name) {
    return event_of(Kind::message, Lane::compute, name, 0, 1);
  };
  const Timeline run{
      "",
      {{work("forward 1", 0, 1), work("forward 2", 0, 1), work("backward_input", 0, 1),
        work("backward_weight", 0, 1), work("bias", 0, 1), work("b", 0, 1), work("前向", 0, 1),
        message("send"), message("receive"), work("10", 0, 1)}}};
  const Legend legend({&run, 1});
  std::string symbols;
  for (const auto& entry : legend.entries()) symbols += entry.symbol;
  EXPECT_EQ(symbols, "FBWIbA=~C");
  EXPECT_EQ(legend.of(run.ranks[0][1]), 0u);
  EXPECT_EQ(std::set<char>(symbols.begin(), symbols.end()).size(), legend.entries().size());
}

ONE_RANK_TEST(FigureTimeline, RefusesWhatCannotBeDrawn) {
  const auto said = [](double start, double end, double waited) {
    const Timeline run{"", {{}, {event_of(Kind::message, Lane::comm, "send", start, end, waited)}}};
    const std::string text = message_of<Failure>([&] { timeline_svg({&run, 1}, ""); });
    EXPECT_EQ(text, message_of<Failure>([&] { gantt(run); }));
    return text;
  };
  EXPECT_TRUE(has(said(nan_d, 1, 0), "rank 1's event 'send'")) << said(nan_d, 1, 0);
  EXPECT_TRUE(has(said(0, infinity, 0), "end inf"));
  EXPECT_TRUE(has(said(2, 1, 0), "cannot be drawn"));
  EXPECT_TRUE(has(said(0, 1, -1), "cannot be drawn"));
  EXPECT_TRUE(has(said(0, 1, 1.1), "cannot be drawn"));
  EXPECT_TRUE(has(said(0, 1, nan_d), "cannot be drawn"));
  EXPECT_EQ(said(0.3, 0.4, 0.4 - 0.3 + 1e-16), "(nothing was thrown)") << "only rounding";
  EXPECT_EQ(said(0.3, 0.4, -1e-16), "(nothing was thrown)");
}

ONE_RANK_TEST(FigureTime, IsShownInRoundNumbers) {
  EXPECT_EQ(show_time(0), "0 s");
  EXPECT_EQ(show_time(1.25e-3), "1.25 ms");
  EXPECT_EQ(show_time(80e-6), "80 µs");
  EXPECT_EQ(show_time(3e-10), "0.3 ns");
  EXPECT_EQ(show_time(1e-3), "1 ms");
  EXPECT_EQ(show_time(3600), "3600 s");
  std::string labels;
  const TimeAxis axis(0.7e-3, 100, 12);
  for (const auto& [at, label] : axis.ticks()) {
    labels += label + ",";
    EXPECT_NEAR(at, std::atof(label.c_str()) / 7, 1e-9);
  }
  EXPECT_EQ(labels, "0,100 µs,200 µs,300 µs,400 µs,500 µs,600 µs,700 µs,");
}

}  // namespace
}  // namespace fivecuts
