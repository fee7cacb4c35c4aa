#include "common/observe/timeline_svg.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/observe/svg.hpp"
#include "common/observe/table.hpp"
#include "common/observe/time_axis.hpp"
#include "common/support/units.hpp"

namespace fivecuts {
namespace {

using Align = Svg::Align;

constexpr double plot = 900, tick_room = 90;                          // pixels along the time axis
constexpr double compute_height = 24, comm_height = 12, row_gap = 8;  // and across it
constexpr double small = 12, large = 15, heading = 18;                // sizes of text
constexpr const char* share_header = "computes";

/// Terminal cells of text that surely fit above the plot.
int cells(double size) { return static_cast<int>(plot / size / 0.7); }

double longest(std::span<const Timeline> panels) {
  double total = 0;
  for (const Timeline& panel : panels) total = std::max(total, extent_of(panel).total());
  return total;
}

double label_column(std::span<const Timeline> panels) {
  double width = 0;
  for (const Timeline& panel : panels)
    width = std::max(width, text_width(fmt::format("rank {}", panel.ranks.size()), small));
  return width + 8;
}

std::string tooltip(const Event& event, std::size_t rank, double begin, bool slots) {
  std::string text =
      fmt::format("{}, rank {}\nstart {}\nduration {}", event.name, rank,
                  show_time(event.start - begin, slots), show_time(event.end - event.start, slots));
  if (event.waited > 0)
    text += fmt::format(", of which {} waiting", show_time(event.waited, slots));
  if (event.bytes > 0) text += "\n" + show_bytes(static_cast<double>(event.bytes));
  if (!event.communicator.empty()) text += fmt::format("\ncommunicator {}", event.communicator);
  return text;
}

class Painter {
 public:
  explicit Painter(std::span<const Timeline> panels)
      : legend_(panels),
        slots_(!panels.empty() && panels.front().slots),
        axis_(longest(panels), plot, tick_room, slots_),
        left_(label_column(panels)) {}

  void paragraph(const std::string& text, double size, bool bold) {
    for (const std::string& line : wrap(text, cells(size))) {
      svg_.text(0, y_ + size, line, {size, Align::left, bold ? "ink" : "faint", bold});
      y_ += 1.35 * size;
    }
  }

  void panel(const Timeline& panel) {
    const Extent extent = extent_of(panel);
    y_ += 16;
    paragraph(panel.title, large, true);
    const bool empty = std::all_of(panel.ranks.begin(), panel.ranks.end(),
                                   [](const auto& r) { return r.empty(); });
    paragraph(empty ? "no events" : "total " + show_time(extent.total(), slots_), small, false);
    if (empty) return;
    svg_.text(left_ + plot + 8, y_ - 0.35 * small, share_header, {small, Align::left, "faint"});
    y_ += 4;
    const double end = left_ + axis_.at(extent.total());
    const double height = rows_height(panel);
    axis(height);
    svg_.line(end, y_, end, y_ + height, "faint");
    rows(panel, extent);
    y_ += 1.5 * small;
  }

  void legend() {
    y_ += 16;
    double x = left_;
    for (std::size_t i = 0; i < legend_.entries().size(); ++i) {
      const auto& [name, symbol, wire] = legend_.entries()[i];
      const Box swatch = key(x, name);
      svg_.box(swatch, fill(i));
      svg_.label(swatch, std::string(1, symbol), small);
    }
    if (legend_.any_waiting()) svg_.hatched_box(key(x, "waiting"), "paper");
  }

  std::string document(const std::string& title) const { return svg_.document(title); }

 private:
  static double height(const std::vector<Event>& events) {
    return compute_height + (uses(events, Lane::comm) ? comm_height : 0) + row_gap;
  }

  /// Of all rows of a panel, the line for the ranks left out among them.
  static double rows_height(const Timeline& panel) {
    const std::vector<std::size_t> shown = shown_ranks(panel);
    double sum = shown.size() < panel.ranks.size() ? compute_height : 0;
    for (const std::size_t rank : shown) sum += height(panel.ranks[rank]);
    return sum;
  }

  void axis(double height) {
    for (const auto& [at, text] : axis_.ticks()) {
      svg_.line(left_ + at, y_, left_ + at, y_ + height + 3, "grid");
      svg_.text(left_ + at, y_ + height + 3 + 1.1 * small, text, {small, Align::middle, "faint"});
    }
    svg_.line(left_, y_ + height, left_ + plot, y_ + height, "grid");
  }

  void rows(const Timeline& panel, const Extent& extent) {
    std::size_t next = 0;
    for (const std::size_t rank : shown_ranks(panel)) {
      if (rank != next) {
        svg_.text(left_ + 4, y_ + compute_height / 2 + 0.2 * small, left_out(panel),
                  {small, Align::left, "faint"});
        y_ += compute_height;
      }
      next = rank + 1;
      const std::vector<Event>& events = panel.ranks[rank];
      const double middle = y_ + compute_height / 2 + 0.36 * small;
      svg_.text(0, middle, fmt::format("rank {}", rank), {small});
      svg_.text(left_ + plot + 8, middle,
                fmt::format("{:.0f}%", 100 * computing_share(events, extent)), {small});
      for (const Event& event : events) bar(event, rank, extent.begin);
      y_ += height(events);
    }
  }

  /// The colour of an entry of the legend: its number among those that compute, or that
  /// communicate.
  std::string fill(std::size_t entry) const {
    const auto& all = legend_.entries();
    std::size_t before = 0;
    for (std::size_t i = 0; i < entry; ++i) before += all[i].wire == all[entry].wire ? 1 : 0;
    return all[entry].wire ? Svg::wire(before) : Svg::fill(before);
  }

  void bar(const Event& event, std::size_t rank, double begin) {
    const bool comm = event.lane == Lane::comm;
    // Two pixels at least, and never past the end of the plot.
    const double width = std::max(2.0, axis_.at(event.end - event.start));
    Box box{std::min(left_ + axis_.at(event.start - begin), left_ + plot - width),
            y_ + (comm ? compute_height : 0), width, comm ? comm_height : compute_height};
    const std::size_t entry = legend_.of(event);
    svg_.begin_group(tooltip(event, rank, begin, slots_));
    if (event.waited > 0) {
      Box wait = box;
      wait.width = std::min(axis_.at(event.waited), width);
      svg_.hatched_box(wait, fill(entry));
      box.x += wait.width;
      box.width -= wait.width;
    }
    if (box.width > 0.01) svg_.box(box, fill(entry));
    const double size = comm ? comm_height - 3 : small - 1;
    const std::string number = split_name(event.name).second;
    if (!svg_.label(box, event.name, size))
      svg_.label(box, legend_.entries()[entry].symbol + number, size);
    svg_.end_group();
  }

  /// Writes `name` at `x`, or on the next line if there is no room, and moves `x` past it. Returns
  /// the box before it.
  Box key(double& x, const std::string& name) {
    const double width = 26 + text_width(name, small) + 18;
    if (x > left_ && x + width > left_ + plot) {
      x = left_;
      y_ += 24;
    }
    const Box swatch{x, y_, 20, 16};
    svg_.text(x + 26, y_ + 8 + 0.36 * small, name, {small});
    x += width;
    return swatch;
  }

  Svg svg_;
  Legend legend_;
  bool slots_;
  TimeAxis axis_;
  double left_;  // where the plot begins
  double y_ = 0;
};

}  // namespace

std::string timeline_svg(std::span<const Timeline> panels, const std::string& title) {
  Painter painter(panels);
  painter.paragraph(title, heading, true);
  for (const Timeline& panel : panels) painter.panel(panel);
  painter.legend();
  return painter.document(title);
}

}  // namespace fivecuts
