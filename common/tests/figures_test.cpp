// The timeline in the terminal and as SVG: that they are well-formed, and that they show the run.
#include <algorithm>
#include <set>
#include <sstream>

#include "common/observe/gantt.hpp"
#include "common/observe/svg.hpp"
#include "common/observe/table.hpp"
#include "common/observe/time_axis.hpp"
#include "common/observe/timeline_svg.hpp"
#include "common/tests/figure_checks.hpp"
#include "common/tests/helpers.hpp"

namespace fivecuts {
namespace {

using Kind = Event::Kind;

std::string long_name(int words) {
  std::string name;
  for (int i = 0; i < words; ++i) name += "quite_a_long_name_";
  return name;
}

Timeline hostile() {
  return {"<&\"> 数据并行 " + long_name(10),
          {{work("<&\">", 0, 1), work(long_name(8), 1, 2), work("bad \xff byte\x01", 2, 3)},
           {event_of(Kind::message, Lane::comm, "接收", 0, 3, 3)}}};
}

/// Every shape of input that a drawing has to survive.
std::vector<std::vector<Timeline>> all_inputs() {
  const Timeline zero{"zero", {{work("a", 5, 5), work("b", 5, 5)}, {}}};
  const Timeline slivers{"slivers", {{work("a", 0, 1e-12), work("b", 1e-12, 1), work("c", 1, 1)}}};
  const Timeline tiny{"tiny", {{work("a", 0, 5e-324)}}};
  const Timeline huge{"huge", {{work("a", 0, 1e15), work("b", 1e15, 3e300)}}};
  return {{},
          {{"", {}}},
          {{"no events", {{}, {}}}},
          {zero},
          {zero, iteration(3)},
          {slivers},
          {tiny},
          {huge},
          {iteration(1)},
          {iteration(64)},
          {iteration(16), iteration(17)},
          {iteration(4), iteration(4, 3), hostile()}};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(FigureGantt, ShowsWhatARunDid) {
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

TEST(FigureGantt, NeverExceedsTheWidth) {
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

TEST(FigureGantt, ShortEventsDoNotVanishSilently) {
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
  // Half of the cells of a long event are its own, and not one more.
  const std::string half = row({work("long", 0, 1), work("end", 2, 2)});
  const auto cells = half.find_last_of('|') - half.find('|') - 1;
  EXPECT_NEAR(static_cast<double>(std::count(half.begin(), half.end(), 'L')),
              static_cast<double>(cells) / 2, 1);
}

TEST(FigureGantt, ManyRanksAreCut) {
  const std::string many = gantt(iteration(64)), few = gantt(iteration(16));
  EXPECT_TRUE(has(many, "... 54 ranks (8 to 61) left out")) << many;
  EXPECT_TRUE(has(many, "rank 7 ") && has(many, "rank 62") && has(many, "rank 63")) << many;
  EXPECT_FALSE(has(many, "rank 8 ") || has(many, "rank 61")) << many;
  EXPECT_FALSE(has(few, "left out"));
  EXPECT_TRUE(has(few, "rank 15"));
  EXPECT_TRUE(has(gantt(iteration(17)), "... 7 ranks (8 to 14) left out"));
}

TEST(FigureLegend, GivesEachSortItsOwnSymbol) {
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

TEST(FigureTimeline, RefusesWhatCannotBeDrawn) {
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
}

TEST(FigureTime, IsShownInRoundNumbers) {
  EXPECT_EQ(show_time(0), "0 s");
  EXPECT_EQ(show_time(1.25e-3), "1.25 ms");
  EXPECT_EQ(show_time(80e-6), "80 µs");
  EXPECT_EQ(show_time(3e-10), "0.3 ns");
  EXPECT_EQ(show_time(3600), "3600 s");
  std::string labels;
  const TimeAxis axis(0.7e-3, 100, 12);
  for (const auto& [at, label] : axis.ticks()) {
    labels += label + ",";
    EXPECT_NEAR(at, std::atof(label.c_str()) / 7, 1e-9);
  }
  EXPECT_EQ(labels, "0,100 µs,200 µs,300 µs,400 µs,500 µs,600 µs,700 µs,");
}

Box text_box(const Element& text) {
  const double size = text.number("font-size");
  const double width = text_width(text.text, size, text.of("font-weight") == "bold");
  const std::string anchor = text.of("text-anchor");
  const double shift = anchor == "middle" ? width / 2 : anchor == "end" ? width : 0;
  return {text.number("x") - shift, text.number("y") - size, width, 1.3 * size};
}

Box rect_box(const Element& rect) {
  return {rect.number("x"), rect.number("y"), rect.number("width"), rect.number("height")};
}

bool within(const Box& inner, const Box& outer) {
  const double rounding = 0.02;
  return inner.x >= outer.x - rounding && inner.y >= outer.y - rounding &&
         inner.x + inner.width <= outer.x + outer.width + rounding &&
         inner.y + inner.height <= outer.y + outer.height + rounding;
}

bool overlap(const Box& a, const Box& b) {
  const double rounding = 0.02;
  return std::min(a.x + a.width, b.x + b.width) - std::max(a.x, b.x) > rounding &&
         std::min(a.y + a.height, b.y + b.height) - std::max(a.y, b.y) > rounding;
}

std::string show(const Element& e) {
  return fmt::format("<{} x={} y={} width={}>{}", e.name, e.of("x"), e.of("y"), e.of("width"),
                     e.text);
}

/// What is wrong with the picture: NaN, text beyond the edges or over other text, bars beyond the
/// plot, a label wider than its bar.
std::vector<std::string> svg_faults(const std::string& svg) {
  const std::vector<Element> elements = read_xml(svg);
  std::vector<std::string> faults;
  const auto expect = [&](bool holds, const std::string& what) {
    if (!holds) faults.push_back(what);
  };
  std::istringstream view(elements[0].of("viewBox"));
  Box page, plot;
  view >> page.x >> page.y >> page.width >> page.height;
  expect(page.width > 0 && page.height > 0, "no page");
  for (const Element& e : elements) {
    if (e.name == "line" && e.of("y1") == e.of("y2"))
      plot = {e.number("x1"), page.y, e.number("x2") - e.number("x1"), page.height};
  }
  std::vector<Box> texts;
  std::map<int, Box> bars;  // by group
  for (const Element& e : elements) {
    for (const char* key : {"x", "y", "width", "height", "x1", "y1", "x2", "y2", "font-size"})
      expect(!e.attributes.contains(key) || std::isfinite(e.number(key)), show(e) + " not finite");
    if (e.name == "rect") {
      expect(within(rect_box(e), page), show(e) + " off the page");
      expect(e.group == 0 || within(rect_box(e), plot), show(e) + " off the plot");
      if (e.group != 0) bars[e.group] = rect_box(e);
    }
    if (e.name != "text") continue;
    const Box box = text_box(e);
    expect(within(box, page), show(e) + " is clipped");
    expect(e.group == 0 || within({box.x, plot.y, box.width, 0}, bars[e.group]) ||
               (box.x >= bars[e.group].x && box.width <= bars[e.group].width),
           show(e) + " is wider than its bar");
    for (const Box& other : texts) expect(!overlap(box, other), show(e) + " covers other text");
    texts.push_back(box);
  }
  return faults;
}

TEST(FigureSvg, IsWellFormedAndNothingIsClipped) {
  for (const std::vector<Timeline>& input : all_inputs()) {
    for (const std::string title : {"", "图：一次迭代", "<&\">"}) {
      const std::string svg = timeline_svg(input, title);
      EXPECT_EQ(svg, timeline_svg(input, title));
      for (const std::string& fault : svg_faults(svg))
        ADD_FAILURE() << (input.empty() ? "nothing" : input[0].title) << ": " << fault;
    }
  }
}

TEST(FigureSvg, ShowsTheTimelineToScale) {
  const std::vector<Timeline> panels = {iteration(2, 1, "first"), iteration(2, 3, "second")};
  const std::vector<Element> elements = read_xml(timeline_svg(panels, "two"));
  std::map<std::string, std::vector<Box>> bars;  // by the first line of their tooltip
  std::string tooltip;
  std::set<std::string> words;
  for (const Element& e : elements) {
    if (e.name == "title" && e.group != 0) tooltip = e.text.substr(0, e.text.find('\n'));
    if (e.name == "rect" && e.group != 0 && e.of("fill").empty())
      bars[tooltip].push_back(rect_box(e));
    if (e.name == "text") words.insert(e.text);
  }
  const auto bar = [&](const std::string& name, std::size_t i) { return bars.at(name).at(i); };
  EXPECT_EQ(bars.size(), 2 * 7u);
  // 240 µs of backward, forward and all_reduce, and the update: 280 µs are the whole plot.
  EXPECT_NEAR(bar("backward, rank 0", 0).width, 900 * 40.0 / 280, 0.02);
  EXPECT_NEAR(bar("backward, rank 0", 1).width, 900 * 40.0 / 280, 0.02) << "one scale for both";
  EXPECT_NEAR(bar("backward, rank 1", 1).width, 900 * 120.0 / 280, 0.02);
  EXPECT_NEAR(bar("backward, rank 1", 1).x - bar("forward 0, rank 1", 1).x, 900 * 120.0 / 280,
              0.02);
  EXPECT_EQ(bars.at("all_reduce, rank 0").size(), 3u) << "a wait in the second panel only";
  EXPECT_NEAR(bar("all_reduce, rank 0", 1).width, 900 * 160.0 / 280, 0.02) << "the wait";
  EXPECT_NEAR(bar("all_reduce, rank 0", 0).height, bar("backward, rank 0", 0).height / 2, 0.01);
  for (const char* word :
       {"two", "first", "second", "total 120 µs", "total 280 µs", "rank 0", "rank 1", "100 µs",
        "backward", "F3", "forward", "update", "waiting", "75%", "32%", "89%"})
    EXPECT_TRUE(words.contains(word)) << word;
}

TEST(FigureSvg, OtherInputsGiveAnotherPicture) {
  const std::vector<Timeline> base = {iteration(4)};
  const auto drawing = [](const std::vector<Timeline>& panels) {
    return timeline_svg(panels, "t");
  };
  std::vector<Timeline> other = base;
  std::set<std::string> svgs = {drawing(base)}, texts = {gantt(base[0])};
  const auto changed = [&](auto change) {
    other = base;
    change(other[0].ranks[2]);
    EXPECT_TRUE(svgs.insert(drawing(other)).second);
    EXPECT_TRUE(texts.insert(gantt(other[0])).second);
  };
  changed([](auto& events) { events.pop_back(); });
  changed([](auto& events) { events[0].name = "other"; });
  changed([](auto& events) { events[0].end /= 2; });
  changed([](auto& events) { events[5].waited = 0; });
  changed([](auto& events) { events[5].lane = Lane::compute; });
  other = base;
  other[0].ranks[0][5].bytes = 7;
  EXPECT_NE(drawing(other), drawing(base)) << "the tooltip has the bytes";
  EXPECT_NE(timeline_svg(base, "t"), timeline_svg(base, "u"));
}

TEST(FigureSvg, IsLegibleOnLightAndDarkPaper) {
  const std::string svg = timeline_svg(all_inputs().back(), "t");
  EXPECT_TRUE(has(svg, "@media (prefers-color-scheme:dark)"));
  std::map<std::string, int> uses;
  for (const Element& e : read_xml(svg)) {
    std::istringstream classes(e.of("class"));
    for (std::string name; classes >> name;) {
      ++uses[name];
      EXPECT_TRUE(has(svg, "\n." + name + "{")) << name << " has no rule";
    }
    EXPECT_TRUE(e.name != "text" || !e.of("class").empty()) << show(e);
  }
  EXPECT_EQ(uses["paper"], 2) << "the page, and the key of waiting";
  EXPECT_GT(uses["label"], 0);
}

TEST(FigureChecks, FindWhatIsWrong) {
  for (const char* broken :
       {"", "<a>", "<a></b>", "<a/><b/>", "<a>&</a>", "<a>&nbsp;</a>", "<a x=1/>", "<a x=\"<\"/>",
        "x<a/>", "<a x=\"1\" x=\"2\"/>", "<a><b></a></b>", "<a", "<a>\x01</a>"})
    EXPECT_THROW(read_xml(broken), std::runtime_error) << broken;
  const auto faults = [](const std::string& content) {
    return svg_faults(
               "<svg viewBox=\"0 0 100 50\"><line x1=\"10\" x2=\"90\" y1=\"40\" y2=\"40\"/>" +
               content + "</svg>")
        .size();
  };
  const std::string text = "<text x=\"20\" y=\"20\" font-size=\"10\">abc</text>";
  const std::string bar = "<rect x=\"20\" y=\"5\" width=\"30\" height=\"20\"/>";
  EXPECT_EQ(faults(text), 0u);
  EXPECT_EQ(faults(text + text), 1u) << "one over the other";
  EXPECT_EQ(faults("<text x=\"95\" y=\"20\" font-size=\"10\">abc</text>"), 1u);
  EXPECT_EQ(faults("<g>" + bar + text + "</g>"), 0u);
  EXPECT_EQ(faults("<g><rect x=\"5\" y=\"5\" width=\"30\" height=\"20\"/></g>"), 1u);
  EXPECT_EQ(faults("<rect x=\"nan\" y=\"5\" width=\"30\" height=\"20\"/>"), 2u);
  EXPECT_EQ(faults("<g><rect x=\"20\" y=\"5\" width=\"9\" height=\"20\"/>" + text + "</g>"), 1u);
}

}  // namespace
}  // namespace fivecuts
