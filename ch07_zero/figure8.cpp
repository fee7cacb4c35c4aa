// Figure 8 and the tables beside it, as text and as SVG.
#include <cmath>

#include "ch07_zero/worlds.hpp"
#include "common/observe/svg.hpp"
#include "common/observe/table.hpp"
#include "common/observe/time_axis.hpp"
#include "common/support/units.hpp"

namespace fivecuts::zero_redundancy {
namespace {

double gb(std::int64_t bytes) { return static_cast<double>(bytes) / 1e9; }

}  // namespace

std::string figure8_text(const Figure8& figure) {
  std::vector<std::string> header = {"stage"};
  for (const int n : Figure8::ranks) header.push_back(fmt::format("N = {}", n));
  for (const std::int64_t cap : Figure8::caps) {
    header.push_back(fmt::format("{:.0f} GB: at rest", gb(cap)));
    header.emplace_back("a step");
  }
  header.emplace_back("7.5B, N = 64");
  Table table(header);
  for (std::size_t stage = 0; stage < figure.bytes.size(); ++stage) {
    std::vector<std::string> row = {std::to_string(stage)};
    for (const std::int64_t bytes : figure.bytes[stage])
      row.push_back(fmt::format("{}", gb(bytes)));
    for (std::size_t k = 0; k < Figure8::caps.size(); ++k) {
      for (const int n : {figure.at_rest_from[stage][k], figure.step_from[stage][k]}) {
        row.push_back(n == 0 ? fmt::format("not to {}", Figure8::most_ranks)
                             : fmt::format("from {}", n));
      }
    }
    row.push_back(fmt::format("{:.1f}", gb(figure.paper[stage])));
    table.row(row);
  }
  return table.text();
}

std::string figure8_svg(const Figure8& figure) {
  constexpr double left = 46, top = 64, width = 560, height = 320, most = 120;
  const auto x_of = [&](double n) { return left + width * std::log2(n) / 6; };
  const auto y_of = [&](double gigabytes) { return top + height * (1 - gigabytes / most); };
  const std::string title = "Model state of a rank: 7B parameters, Adam, bf16, by the ledger";
  Svg svg;
  svg.text(0, 0, title, {15, Svg::Align::left, "ink", true});
  for (double tick = 0; tick <= most; tick += 20) {
    svg.line(left, y_of(tick), left + width, y_of(tick), "grid");
    svg.text(left - 6, y_of(tick) + 4, fmt::format("{:.0f}", tick),
             {11, Svg::Align::right, "faint"});
  }
  svg.text(0, top - 14, "GB", {11, Svg::Align::left, "faint"});
  for (const int n : Figure8::ranks) {
    svg.line(x_of(n), top, x_of(n), top + height, "grid");
    svg.text(x_of(n), top + height + 16, std::to_string(n), {11, Svg::Align::middle, "faint"});
  }
  svg.text(left + width / 2, top + height + 34, "ranks N", {12, Svg::Align::middle, "faint"});
  for (const std::int64_t cap : Figure8::caps) {
    svg.line(left, y_of(gb(cap)), left + width, y_of(gb(cap)), "ink");
    svg.text(left + width + 6, y_of(gb(cap)) + 4, fmt::format("{:.0f} GB card", gb(cap)), {12});
  }
  for (std::size_t stage = 0; stage < figure.bytes.size(); ++stage) {
    const double key = static_cast<double>(stage) * 90;
    svg.box({key, 16, 11, 11}, Svg::fill(stage));
    svg.text(key + 16, 26, fmt::format("stage {}", stage), {12});
    for (std::size_t k = 0; k < Figure8::ranks.size(); ++k) {
      const double x = x_of(Figure8::ranks[k]), y = y_of(gb(figure.bytes[stage][k]));
      if (k > 0) {
        svg.line(x_of(Figure8::ranks[k - 1]), y_of(gb(figure.bytes[stage][k - 1])), x, y, "faint");
      }
      svg.begin_group(fmt::format("stage {}, N = {}: {} GB", stage, Figure8::ranks[k],
                                  gb(figure.bytes[stage][k])));
      svg.box({x - 5, y - 5, 10, 10}, Svg::fill(stage));
      svg.end_group();
    }
  }
  return svg.document(title);
}

std::string wire_text(const std::vector<WireRow>& rows, int ranks) {
  Table table({"stage", "state", "k = 1", "k = 2", "k = 4", "messages at k = 1"});
  const std::int64_t psi = parameter_count(small_case(ranks));
  for (std::size_t stage = 0; stage < 4; ++stage) {
    std::vector<std::string> row = {
        std::to_string(stage), fmt::format("{:.4g} Ψ", static_cast<double>(rows[0].state[stage]) /
                                                           static_cast<double>(psi))};
    for (const WireRow& of_k : rows) row.push_back(fmt::format("{:.4g}", of_k.units[stage]));
    row.push_back(std::to_string(rows[0].messages[stage]));
    table.row(row);
  }
  return table.text();
}

std::string times_text(const std::vector<StepTime>& times, int ranks, const Cluster& cluster) {
  Table table({"step", fmt::format("{} ranks on a node", ranks), "of stage 0", "a node each",
               "of stage 0"});
  for (const auto& [name, inside, across] : times) {
    table.row({name, show_time(inside, cluster.unit),
               fmt::format("{:.3f}", inside / times[0].inside), show_time(across, cluster.unit),
               fmt::format("{:.3f}", across / times[0].across)});
  }
  return table.text();
}

}  // namespace fivecuts::zero_redundancy
