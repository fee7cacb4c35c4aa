#include "common/observe/gantt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/observe/table.hpp"
#include "common/observe/time_axis.hpp"

namespace fivecuts {
namespace {

constexpr char idle = ' ', waiting = '.';
constexpr int least_width = 40, indent = 2, tick_room = 10;
constexpr const char* share_header = "computes";

/// `text`, its end replaced by … if it is wider than `width`.
std::string shortened(std::string text, int width) {
  if (display_width(text) <= width) return text;
  while (!text.empty() && display_width(text) >= width) {
    while ((static_cast<unsigned char>(text.back()) & 0xC0u) == 0x80u && text.size() > 1)
      text.pop_back();
    text.pop_back();
  }
  return text + "…";
}

/// The part of an event in which it waits, or the one in which it works; positions in cells.
struct Part {
  std::size_t event;
  double from, to;
  char symbol;
  std::string number;
};

class LaneRow {
 public:
  LaneRow(const Legend& legend, const TimeAxis& axis, double begin, int cells)
      : legend_(legend),
        axis_(axis),
        begin_(begin),
        owner_(static_cast<std::size_t>(cells), nobody) {}

  void add(const Event& event) {
    const std::size_t index = events_++;
    const double worked = std::min(event.start + event.waited, event.end);
    if (event.waited > 0) parts_.push_back({index, at(event.start), at(worked), waiting, ""});
    if (event.waited > 0 && worked >= event.end) return;
    parts_.push_back({index, at(worked), at(event.end), legend_.entries()[legend_.of(event)].symbol,
                      split_name(event.name).second});
  }

  /// The cells, and in `hidden` the events that none of them shows.
  std::string text(int& hidden) {
    cover();
    hidden += place_short_ones();
    for (std::size_t c = 0; c < owner_.size(); c = run_end(c)) {
      if (owner_[c] != nobody && part_at(c).number.size() >= run_end(c) - c)
        unnumbered_ += part_at(c).symbol;
    }
    std::string row;
    while (row.size() < owner_.size()) row += run(row.size());
    return row;
  }

 private:
  static constexpr int nobody = -1;

  /// Rounded, lest the last bit of a time decides who has a cell.
  double at(double time) const { return std::round(axis_.at(time - begin_) * 1e6) / 1e6; }

  void cover() {
    std::vector<double> most(owner_.size()), total(owner_.size());
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      for (auto c = static_cast<std::size_t>(parts_[p].from);
           c < owner_.size() && double(c) < parts_[p].to; ++c) {
        const double share =
            std::min(parts_[p].to, double(c + 1)) - std::max(parts_[p].from, double(c));
        total[c] += share;
        if (share > most[c]) owner_[c] = static_cast<int>(p);
        most[c] = std::max(most[c], share);
      }
    }
    for (std::size_t c = 0; c < owner_.size(); ++c) {
      if (total[c] < 0.5) owner_[c] = nobody;
    }
  }

  int place_short_ones() {
    std::vector<bool> shown(events_);
    for (const int p : owner_) {
      if (p != nobody) shown[parts_[static_cast<std::size_t>(p)].event] = true;
    }
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      const double middle = (parts_[p].from + parts_[p].to) / 2;
      int& cell = owner_[std::min(static_cast<std::size_t>(middle), owner_.size() - 1)];
      if (shown[parts_[p].event] || cell != nobody) continue;
      cell = static_cast<int>(p);
      shown[parts_[p].event] = true;
    }
    return static_cast<int>(std::count(shown.begin(), shown.end(), false));
  }

  const Part& part_at(std::size_t cell) const {
    return parts_[static_cast<std::size_t>(owner_[cell])];
  }

  /// One past the cells from `first` on that have the same owner.
  std::size_t run_end(std::size_t first) const {
    std::size_t end = first;
    while (end < owner_.size() && owner_[end] == owner_[first]) ++end;
    return end;
  }

  std::string run(std::size_t first) const {
    const std::size_t length = run_end(first) - first;
    if (owner_[first] == nobody) return std::string(length, idle);
    const Part& part = part_at(first);
    std::string cells(length, part.symbol);
    if (unnumbered_.find(part.symbol) == std::string::npos)
      cells.replace(1, part.number.size(), part.number);
    return cells;
  }

  const Legend& legend_;
  const TimeAxis& axis_;
  double begin_;
  std::vector<int> owner_;  // of each cell, an index of parts_
  std::vector<Part> parts_;
  std::size_t events_ = 0;
  std::string unnumbered_;  // symbols of events whose numbers do not all fit
};

std::string axis_line(const TimeAxis& axis, std::size_t cells) {
  std::string line;
  std::size_t used = 0;
  for (const auto& [at, label] : axis.ticks()) {
    const auto cell = static_cast<std::size_t>(std::lround(at));
    const auto wide = static_cast<std::size_t>(display_width(label)) + 1;
    if (cell < used || cell + wide > cells) continue;
    line += std::string(cell - used, ' ') + "|" + label;
    used = cell + wide;
  }
  return line + std::string(cells - used, ' ');
}

std::string legend_lines(const Legend& legend, int width) {
  std::vector<std::string> entries;
  for (const Legend::Entry& entry : legend.entries())
    entries.push_back(fmt::format("{} {}", entry.symbol, entry.name));
  if (legend.any_waiting()) entries.push_back(fmt::format("{} waiting", waiting));
  std::string lines, line;
  for (std::string& entry : entries) {
    entry = "  " + shortened(std::move(entry), width - indent);
    if (display_width(line + entry) > width) {
      lines += line + "\n";
      line.clear();
    }
    line += entry;
  }
  return lines + line + "\n";
}

}  // namespace

std::string gantt(const Timeline& timeline, int width) {
  width = std::max(width, least_width);
  std::string out;
  for (const std::string& line : wrap(timeline.title, width - indent))
    out += "  " + shortened(line, width - indent) + "\n";
  const Extent extent = extent_of(timeline);
  const Legend legend({&timeline, 1});
  if (legend.entries().empty()) return out + "  no events\n";

  const std::size_t label = fmt::format("rank {}", timeline.ranks.size() - 1).size();
  const int cells = width - indent - static_cast<int>(label) - 4 - display_width(share_header);
  const TimeAxis axis(extent.total(), cells, tick_room, timeline.slots);
  out += fmt::format("  {:{}}  {}  {}\n", "", label,
                     axis_line(axis, static_cast<std::size_t>(cells)), share_header);
  int hidden = 0;
  std::size_t next = 0;
  for (const std::size_t rank : shown_ranks(timeline)) {
    if (rank != next) out += "  " + left_out(timeline) + "\n";
    next = rank + 1;
    const std::vector<Event>& events = timeline.ranks[rank];
    for (const Lane lane : {Lane::compute, Lane::comm}) {
      if (lane == Lane::comm && !uses(events, lane)) continue;
      LaneRow row(legend, axis, extent.begin, cells);
      for (const Event& event : events) {
        if (event.lane == lane) row.add(event);
      }
      const std::string name = lane == Lane::compute ? fmt::format("rank {}", rank) : "  comm";
      const double percent = 100 * computing_share(events, extent);
      out += fmt::format("  {:{}} |{}|{}\n", name, label, row.text(hidden),
                         lane == Lane::compute ? fmt::format(" {:.0f}%", percent) : "");
    }
  }
  out += legend_lines(legend, width);
  if (hidden > 0)
    out += fmt::format("  too short to be shown: {} event{}\n", hidden, hidden == 1 ? "" : "s");
  return out + fmt::format("  total {}\n", show_time(extent.total(), timeline.slots));
}

}  // namespace fivecuts
