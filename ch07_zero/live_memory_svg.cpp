// Figure 7 as SVG: live memory over a step, and under it what goes on meanwhile.
#include <algorithm>

#include "ch07_zero/live_memory.hpp"
#include "common/observe/svg.hpp"
#include "common/observe/time_axis.hpp"
#include "common/support/units.hpp"

namespace fivecuts::zero_redundancy {
namespace {

constexpr double left = 104, top = 66, width = 900, height = 260;  // of the curve
constexpr double row_height = 22;

bool is_layer(const std::string& row) { return row.starts_with("layer"); }

class Picture {
 public:
  explicit Picture(const Figure7& figure)
      : figure_(figure), x_scale_(figure.seconds > 0 ? width / figure.seconds : 0) {}

  std::string draw() {
    const std::string title = fmt::format(
        "Live memory of a rank over a step of ZeRO stage {}, {} ranks{}", figure_.stage,
        figure_.ranks, figure_.stage == 3 && !figure_.prefetch ? ", without prefetch" : "");
    svg_.text(0, 0, title, {15, Svg::Align::left, "ink", true});
    key();
    curve();
    rows();
    return svg_.document(title);
  }

 private:
  void key() {
    double x = 0;
    for (const Category c : all_categories) {
      svg_.box({x, 16, 11, 11}, Svg::fill(static_cast<std::size_t>(c)));
      svg_.text(x + 16, 26, name_of(c), {12});
      x += 34 + text_width(name_of(c), 12);
    }
  }

  void curve() {
    const double y_scale = height / static_cast<double>(figure_.most());
    for (const double part : {0.0, 0.5, 1.0}) {
      const double y = top + height * (1 - part);
      svg_.line(left, y, left + width, y, "grid");
      svg_.text(left - 6, y + 4, show_bytes(part * static_cast<double>(figure_.most())),
                {11, Svg::Align::right, "faint"});
    }
    for (std::size_t k = 0; k < figure_.moments.size(); ++k) {
      const Moment& moment = figure_.moments[k];
      const double end =
          k + 1 < figure_.moments.size() ? figure_.moments[k + 1].time : figure_.seconds;
      const double x = left + moment.time * x_scale_, wide = (end - moment.time) * x_scale_;
      if (wide <= 0) continue;
      svg_.begin_group(fmt::format("{} {}: {}", show_time(moment.time, figure_.slots), moment.what,
                                   show_bytes(static_cast<double>(moment.total()))));
      double y = top + height;
      for (const Category c : all_categories) {
        const double tall = static_cast<double>(moment.live[static_cast<std::size_t>(c)]) * y_scale;
        if (tall <= 0) continue;
        y -= tall;
        svg_.box({x, y, wide, tall}, Svg::fill(static_cast<std::size_t>(c)));
      }
      svg_.end_group();
    }
  }

  /// First the layers, then what is done, in the order in which it comes first; each row has its
  /// name at the left, and a bar without room for its own name has the number of its layer.
  void rows() {
    std::vector<std::string> names;
    for (const Bar& bar : figure_.bars) {
      if (std::ranges::find(names, bar.row) == names.end()) names.push_back(bar.row);
    }
    std::ranges::stable_partition(names, is_layer);
    double y = top + height + 12;
    const double bottom = y + row_height * static_cast<double>(names.size());
    const TimeAxis axis(figure_.seconds, width, 80, figure_.slots);
    for (const TimeAxis::Tick& tick : axis.ticks()) {
      svg_.line(left + tick.at, top + height, left + tick.at, bottom + 3, "grid");
      svg_.text(left + tick.at, bottom + 16, tick.label, {11, Svg::Align::middle, "faint"});
    }
    for (const std::string& name : names) {
      svg_.text(left - 6, y + 13, name, {11, Svg::Align::right});
      for (const Bar& bar : figure_.bars) {
        if (bar.row == name) draw(bar, y);
      }
      y += row_height;
    }
  }

  void draw(const Bar& bar, double y) {
    const Box box = {left + bar.start * x_scale_, y, (bar.end - bar.start) * x_scale_,
                     row_height - 4};
    if (box.width <= 0) return;
    const bool sends = bar.row.starts_with("all-") || bar.row == "reduce-scatter";
    const std::string colour = sends                              ? Svg::wire(0)
                               : !is_layer(bar.row)               ? Svg::fill(all_categories.size())
                               : bar.what.starts_with("gradient") ? Svg::fill(1)
                                                                  : Svg::fill(0);
    svg_.begin_group(fmt::format("{} {}", show_time(bar.start, figure_.slots), bar.what));
    svg_.box(box, colour);
    const std::string number = is_layer(bar.row) ? "" : bar.what.substr(bar.what.rfind(' ') + 1);
    if (!svg_.label(box, bar.what, 10)) svg_.label(box, number, 10);
    svg_.end_group();
  }

  const Figure7& figure_;
  double x_scale_;
  Svg svg_;
};

}  // namespace

std::string figure7_svg(const Figure7& figure) { return Picture(figure).draw(); }

}  // namespace fivecuts::zero_redundancy
