// Time over size, both logarithmic.
#include <algorithm>
#include <cmath>

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
      if (value <= 0) continue;  // no time at all: the cluster `unit`
      axis.first = std::min(axis.first, std::floor(std::log10(value)));
      axis.last = std::max(axis.last, std::ceil(std::log10(value) - 0.05));  // 1.024 GB is 1 GB
    }
    if (axis.last <= axis.first) axis = {-1, 0, length};
    return axis;
  }
  double at(double value) const { return length * (std::log10(value) - first) / (last - first); }
};

std::string fill_of(const NamedAlgorithm& one) {
  return Svg::fill(static_cast<std::size_t>(&one - all_algorithms().data()));
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
}

void curve(Svg& svg, const Sweep& sweep, std::size_t a, const LogAxis& x, const LogAxis& y,
           double at, double top) {
  const auto place = [&](std::size_t k) {
    return std::pair(at + x.at(static_cast<double>(sweep.bytes[k])),
                     top + height - y.at(sweep.seconds[a][k]));
  };
  for (std::size_t k = 0; k < sweep.bytes.size(); ++k) {
    if (sweep.seconds[a][k] <= 0) continue;
    const auto [px, py] = place(k);
    if (k > 0 && sweep.seconds[a][k - 1] > 0) {
      svg.line(place(k - 1).first, place(k - 1).second, px, py, "faint");
    }
    svg.begin_group(fmt::format("{}: {} in {}", sweep.algorithms[a]->name,
                                show_bytes(static_cast<double>(sweep.bytes[k])),
                                show_time(sweep.seconds[a][k])));
    const double size = 9 - 1.2 * static_cast<double>(a);  // those below stay visible
    svg.box({px - size / 2, py - size / 2, size, size}, fill_of(*sweep.algorithms[a]));
    svg.end_group();
  }
}

void legend(Svg& svg, const std::vector<Sweep>& sweeps, double y) {
  double x = 0;
  for (const NamedAlgorithm& one : all_algorithms()) {
    const bool used = std::ranges::any_of(sweeps, [&](const Sweep& sweep) {
      return std::ranges::find(sweep.algorithms, &one) != sweep.algorithms.end();
    });
    if (!used) continue;
    svg.box({x, y - 10, 11, 11}, fill_of(one));
    svg.text(x + 16, y, one.name, {12});
    x += 30 + text_width(one.name, 12);
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
    const double top = 66 + static_cast<double>(k / 2) * (height + 66);
    svg.text(at, top - 10, sweep.title, {13, Svg::Align::left, "ink", true});
    axes(svg, x, y, at, top);
    for (std::size_t a = 0; a < sweep.algorithms.size(); ++a) curve(svg, sweep, a, x, y, at, top);
  }
  return svg.document(title);
}

}  // namespace fivecuts::all_reduce
