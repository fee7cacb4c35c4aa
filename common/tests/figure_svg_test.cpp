// The timeline as SVG: that it is well-formed, legible, and shows the run.
#include <algorithm>
#include <set>
#include <sstream>

#include "common/observe/gantt.hpp"
#include "common/observe/svg.hpp"
#include "common/observe/timeline_svg.hpp"
#include "common/tests/figure_checks.hpp"
#include "common/tests/helpers.hpp"

namespace fivecuts {
namespace {

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

ONE_RANK_TEST(FigureSvg, IsWellFormedAndNothingIsClipped) {
  for (const std::vector<Timeline>& input : all_inputs()) {
    for (const std::string title : {"", "图：一次迭代", "<&\">"}) {
      const std::string svg = timeline_svg(input, title);
      EXPECT_EQ(svg, timeline_svg(input, title));
      for (const std::string& fault : svg_faults(svg))
        ADD_FAILURE() << (input.empty() ? "nothing" : input[0].title) << ": " << fault;
    }
  }
}

ONE_RANK_TEST(FigureSvg, KnowsHowWideTextCanBe) {
  const auto em = [](const char* text, bool bold = false) { return text_width(text, 1, bold); };
  EXPECT_EQ(em(""), 0);
  EXPECT_NEAR(em("rank"), 4 * 0.65, 1e-9);
  EXPECT_GE(em("0.25"), 3 * 0.636 + 0.318) << "DejaVu Sans";
  EXPECT_GE(em("WM@"), 0.989 + 0.863 + 1);
  EXPECT_GE(em("Wm", true), 1.103 + 1.042) << "DejaVu Sans Bold";
  EXPECT_NEAR(em("数据并行"), 4, 1e-9);
  EXPECT_NEAR(text_width("数据 rank", 20), 20 * (2 + 5 * 0.65), 1e-9);
  Svg svg;
  EXPECT_TRUE(svg.label({0, 0, 24, 12}, "数据", 10)) << "20 and a margin";
  EXPECT_FALSE(svg.label({0, 0, 23, 12}, "数据", 10));
  EXPECT_FALSE(svg.label({0, 0, 24, 9}, "数据", 10)) << "too low";
  EXPECT_THROW(svg.box({nan_d, 0, 1, 1}, Svg::fill(0)), Failure);
  EXPECT_EQ(Svg::fill(9), "fill1");
}

ONE_RANK_TEST(FigureSvg, ShowsTheTimelineToScale) {
  const std::vector<Timeline> panels = {iteration(2, 1, "first"), iteration(2, 3, "second")};
  const std::vector<Element> elements = read_xml(timeline_svg(panels, "two"));
  std::map<std::string, std::vector<Box>> bars;  // by the first line of their tooltip
  std::string tooltip;
  std::set<std::string> words;
  for (const Element& e : elements) {
    if (e.name == "title" && e.group != 0) tooltip = e.text.substr(0, e.text.find('\n'));
    if (e.name == "rect" && e.group != 0 && e.of("fill").empty())
      bars[tooltip].push_back(rect_box(e));
    if (e.name != "text") continue;
    words.insert(e.text);
    const bool title = e.text == "two" || e.text == "first" || e.text == "second";
    EXPECT_EQ(e.of("font-weight"), title ? "bold" : "") << show(e);
  }
  const auto bar = [&](const std::string& name, std::size_t i) { return bars.at(name).at(i); };
  EXPECT_EQ(bars.size(), 2 * 7u);
  std::vector<Box> all;
  for (const auto& [name, boxes] : bars) all.insert(all.end(), boxes.begin(), boxes.end());
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_FALSE(overlap(all[i], all[j]));
  }
  // The longer of the two takes 270 µs: the whole plot.
  EXPECT_NEAR(bar("backward, rank 0", 0).width, 900 * 40.0 / 270, 0.02);
  EXPECT_NEAR(bar("backward, rank 0", 1).width, 900 * 40.0 / 270, 0.02) << "one scale for both";
  EXPECT_NEAR(bar("backward, rank 1", 1).width, 900 * 120.0 / 270, 0.02);
  EXPECT_NEAR(bar("backward, rank 1", 1).x - bar("forward 0, rank 1", 1).x, 900 * 120.0 / 270,
              0.02);
  EXPECT_EQ(bars.at("all_reduce, rank 0").size(), 3u) << "a wait in the second panel only";
  EXPECT_NEAR(bar("all_reduce, rank 0", 1).width, 900 * 140.0 / 270, 0.02) << "the wait";
  EXPECT_NEAR(bar("all_reduce, rank 0", 0).height, bar("backward, rank 0", 0).height / 2, 0.01);
  for (const char* word :
       {"two", "first", "second", "total 130 µs", "total 270 µs", "rank 0", "rank 1", "100 µs",
        "backward", "F3", "forward", "update", "waiting", "69%", "33%", "93%"})
    EXPECT_TRUE(words.contains(word)) << word;
}

ONE_RANK_TEST(FigureSvg, StaysOnThePageWithManySortsOfEvents) {
  Timeline timeline{"sorts", {{}}};
  for (int i = 0; i < 40; ++i)
    timeline.ranks[0].push_back(work(std::string(1 + static_cast<std::size_t>(i), 'x'), i, i + 1));
  const std::string svg = timeline_svg({&timeline, 1}, "");
  EXPECT_EQ(svg_faults(svg), std::vector<std::string>{});
  EXPECT_LT(read_xml(svg)[0].number("width"), 1100) << "the legend has several lines";
}

ONE_RANK_TEST(FigureSvg, OtherInputsGiveAnotherPicture) {
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

ONE_RANK_TEST(FigureSvg, IsLegibleOnLightAndDarkPaper) {
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

ONE_RANK_TEST(FigureChecks, FindWhatIsWrong) {
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
