// Time over size, both logarithmic. Where messages take time: not under `unit`.
#include <algorithm>
#include <cmath>
#include <functional>

#include "ch03_allreduce/timing.hpp"
#include "common/observe/svg.hpp"
#include "common/observe/time_axis.hpp"
#include "common/support/units.hpp"

namespace fivecuts::all_reduce {
namespace {

constexpr double width = 340, height = 230, left = 70, gap = 60, small = 11;

/// Decades of an axis, and where a value lies on it.
struct LogAxis {
  double first = 0, last = 1, length = 1;  // powers of ten
  static LogAxis over(const std::vector<double>& values, double length) {
    LogAxis axis{1e300, -1e300, length};
    for (const double value : values) {
      axis.first = std::min(axis.first, std::floor(std::log10(value)));
      axis.last = std::max(axis.last, std::ceil(std::log10(value) - 0.05));  // 1.024 GB is 1 GB
    }
    return axis;
  }
  double at(double value) const { return length * (std::log10(value) - first) / (last - first); }
};

std::size_t index_of(const NamedAlgorithm& one) {
  return static_cast<std::size_t>(&one - all_algorithms().data());
}

std::string fill_of(const NamedAlgorithm& one) { return Svg::fill(index_of(one)); }

/// The letter of an algorithm, which tells it apart without colours too, and the point of its curve
/// that bears it: where the curve is near no other, on most clusters. As all_algorithms() has them.
struct Mark {
  const char* letter;
  std::size_t point;
};
constexpr Mark marks[] = {{"G", 5}, {"F", 4}, {"R", 1}, {"T", 6}, {"D", 5}, {"H", 6}};

void mark(Svg& svg, const NamedAlgorithm& one, double x, double y) {
  const Box box{x - 7, y - 7, 14, 14};
  svg.box(box, fill_of(one));
  svg.label(box, marks[index_of(one)].letter, 10);
}

void axes(Svg& svg, const LogAxis& x, const LogAxis& y, double at, double top) {
  for (double power = x.first; power <= x.last; ++power) {
    const double place = at + x.at(std::pow(10, power));
    svg.line(place, top, place, top + height, "grid");
    svg.text(place, top + height + 16, show_bytes(std::pow(10, power)),
             {small, Svg::Align::middle, "faint"});
  }
  for (double power = y.first; power <= y.last; ++power) {
    const double place = top + height - y.at(std::pow(10, power));
    svg.line(at, place, at + width, place, "grid");
    svg.text(at - 6, place + 4, show_time(std::pow(10, power)),
             {small, Svg::Align::right, "faint"});
  }
  svg.text(at + width / 2, top + height + 34, "size of the tensor", {small, Svg::Align::middle});
  svg.text(at - left + 6, top - 8, "time", {small});
}

void curve(Svg& svg, const Sweep& sweep, std::size_t a,
           const std::function<std::pair<double, double>(std::size_t a, std::size_t k)>& place) {
  const NamedAlgorithm& one = *sweep.algorithms[a];
  for (std::size_t k = 1; k < sweep.bytes.size(); ++k) {
    const auto [from_x, from_y] = place(a, k - 1);
    const auto [to_x, to_y] = place(a, k);
    for (const double beside : {-0.5, 0.5}) {  // two strokes: one is pale on white
      svg.line(from_x, from_y + beside, to_x, to_y + beside, fill_of(one).c_str());
    }
  }
  for (std::size_t k = 0; k < sweep.bytes.size(); ++k) {
    const auto [x, y] = place(a, k);
    svg.begin_group(fmt::format("{}: {} in {}", one.name,
                                show_bytes(static_cast<double>(sweep.bytes[k])),
                                show_time(sweep.seconds[a][k])));
    svg.box({x - 2.5, y - 2.5, 5, 5}, fill_of(one));
    svg.end_group();
  }
}

void curves(Svg& svg, const Sweep& sweep, const LogAxis& x, const LogAxis& y, double at,
            double top) {
  const auto place = [&](std::size_t a, std::size_t k) {
    return std::pair(at + x.at(static_cast<double>(sweep.bytes[k])),
                     top + height - y.at(sweep.seconds[a][k]));
  };
  for (std::size_t a = 0; a < sweep.algorithms.size(); ++a) curve(svg, sweep, a, place);
  for (std::size_t a = 0; a < sweep.algorithms.size(); ++a) {  // above all curves
    const NamedAlgorithm& one = *sweep.algorithms[a];
    const auto [mark_x, mark_y] = place(a, marks[index_of(one)].point);
    mark(svg, one, mark_x, mark_y);
  }
}

void legend(Svg& svg, const std::vector<Sweep>& sweeps, double y) {
  double x = 0;
  for (const NamedAlgorithm& one : all_algorithms()) {
    const bool used = std::ranges::any_of(sweeps, [&](const Sweep& sweep) {
      return std::ranges::find(sweep.algorithms, &one) != sweep.algorithms.end();
    });
    if (!used) continue;
    mark(svg, one, x + 7, y - 4);
    svg.text(x + 19, y, one.name, {12});
    x += 34 + text_width(one.name, 12);
  }
}

}  // namespace

std::string times_svg(const std::vector<Sweep>& sweeps, const std::string& title) {
  Svg svg;
  svg.text(0, 0, title, {15, Svg::Align::left, "ink", true});
  legend(svg, sweeps, 24);
  for (std::size_t k = 0; k < sweeps.size(); ++k) {
    const Sweep& sweep = sweeps[k];
    std::vector<double> sizes(sweep.bytes.begin(), sweep.bytes.end()), times;
    for (const auto& of_one : sweep.seconds)
      times.insert(times.end(), of_one.begin(), of_one.end());
    const LogAxis x = LogAxis::over(sizes, width), y = LogAxis::over(times, height);
    const double at = left + static_cast<double>(k % 2) * (width + left + gap);
    const double top = 66 + static_cast<double>(k / 2) * (height + 84);
    svg.text(at, top - 10, sweep.title, {13, Svg::Align::left, "ink", true});
    axes(svg, x, y, at, top);
    curves(svg, sweep, x, y, at, top);
  }
  return svg.document(title);
}

}  // namespace fivecuts::all_reduce
