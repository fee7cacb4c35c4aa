#include "common/observe/timeline.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "common/support/error.hpp"

namespace fivecuts {
namespace {

constexpr std::size_t most_ranks = 16, first_ranks = 8, last_ranks = 2;

void check(const Event& event, std::size_t rank) {
  const double length = event.end - event.start;
  const double rounding = 1e-9 * std::max(std::abs(event.start), std::abs(event.end));
  if (std::isfinite(event.start) && std::isfinite(length) && length >= 0 &&
      event.waited >= -rounding && event.waited <= length + rounding)
    return;
  fail(fmt::format("rank {}'s event '{}' cannot be drawn: start {}, end {}, waited {}", rank,
                   event.name, event.start, event.end, event.waited));
}

/// Letters to try, the best first: the initials of the words, then the other letters, upper case
/// before lower.
std::string candidates(const std::string& name, Event::Kind kind) {
  std::string initials, letters, lower;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto letter = static_cast<unsigned char>(name[i]);
    if (letter >= 0x80 || !std::isalpha(letter)) continue;
    const bool initial = i == 0 || !std::isalpha(static_cast<unsigned char>(name[i - 1]));
    (initial ? initials : letters) += static_cast<char>(std::toupper(letter));
    lower += static_cast<char>(std::tolower(letter));
  }
  const std::string any = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  const std::string signs = kind == Event::Kind::message      ? "=~+<>"
                            : kind == Event::Kind::collective ? "#%@&*"
                                                              : "";
  return signs + initials + letters + lower + any;
}

}  // namespace

Extent extent_of(const Timeline& timeline) {
  Extent extent;
  bool first = true;
  for (std::size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
    for (const Event& event : timeline.ranks[rank]) {
      check(event, rank);
      extent.begin = first ? event.start : std::min(extent.begin, event.start);
      extent.end = first ? event.end : std::max(extent.end, event.end);
      first = false;
    }
  }
  require(std::isfinite(extent.total()), "the times of a timeline are too far apart to be drawn");
  return extent;
}

std::vector<std::size_t> shown_ranks(const Timeline& timeline) {
  const std::size_t ranks = timeline.ranks.size();
  std::vector<std::size_t> shown;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (ranks <= most_ranks || rank < first_ranks || rank >= ranks - last_ranks)
      shown.push_back(rank);
  }
  return shown;
}

std::string left_out(const Timeline& timeline) {
  const std::size_t ranks = timeline.ranks.size();
  return fmt::format("... {} ranks ({} to {}) left out", ranks - first_ranks - last_ranks,
                     first_ranks, ranks - last_ranks - 1);
}

bool uses(const std::vector<Event>& events, Lane lane) {
  return std::any_of(events.begin(), events.end(),
                     [&](const Event& event) { return event.lane == lane; });
}

double computing_share(const std::vector<Event>& events, const Extent& extent) {
  double busy = 0;
  for (const Event& event : events) {
    if (event.lane == Lane::compute && event.kind == Event::Kind::compute)
      busy += event.end - event.start - event.waited;
  }
  return extent.total() > 0 ? busy / extent.total() : 0;
}

std::pair<std::string, std::string> split_name(const std::string& name) {
  const std::size_t digit = name.find_last_not_of("0123456789") + 1;
  const std::size_t end = digit == 0 ? 0 : name.find_last_not_of(" #_", digit - 1) + 1;
  if (end == 0) return {name, ""};
  return {digit < name.size() ? name.substr(0, end) : name, name.substr(digit)};
}

Legend::Legend(std::span<const Timeline> panels) {
  for (const Timeline& panel : panels) {
    for (const std::size_t rank : shown_ranks(panel)) {
      for (const Event& event : panel.ranks[rank]) add(event);
    }
  }
}

void Legend::add(const Event& event) {
  any_waiting_ = any_waiting_ || event.waited > 0;
  if (of(event) < entries_.size()) return;
  const std::string name = split_name(event.name).first;
  const auto taken = [&](char symbol) {
    return std::any_of(entries_.begin(), entries_.end(),
                       [&](const Entry& entry) { return entry.symbol == symbol; });
  };
  char symbol = '?';
  for (const char candidate : candidates(name, event.kind)) {
    if (symbol == '?' && !taken(candidate)) symbol = candidate;
  }
  entries_.push_back({name, symbol, event.kind != Event::Kind::compute});
}

std::size_t Legend::of(const Event& event) const {
  const std::string name = split_name(event.name).first;
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.name == name; });
  return static_cast<std::size_t>(found - entries_.begin());
}

}  // namespace fivecuts
