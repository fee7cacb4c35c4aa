#pragma once
// What the drawings of a timeline agree on: its extent, the ranks they show, and one letter for
// each sort of event.
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/observe/events.hpp"

namespace fivecuts {

/// Drawings count time from the first event on, so that panels recorded late in a run still
/// compare.
struct Extent {
  double begin = 0, end = 0;  ///< seconds: the first start and the last end of all ranks
  double total() const { return end - begin; }
};

/// Throws Failure, with rank and event, if a time is not finite, an event ends before it starts, or
/// it waited for less than nothing or longer than it lasts.
Extent extent_of(const Timeline& timeline);

/// All ranks if they are 16 or fewer, else the first 8 and the last 2.
std::vector<std::size_t> shown_ranks(const Timeline& timeline);

/// "... 54 ranks (8 to 61) left out", for the gap in shown_ranks.
std::string left_out(const Timeline& timeline);

bool uses(const std::vector<Event>& events, Lane lane);

/// The share (0 to 1) of the timeline's total in which the rank's compute lane computes: waiting
/// and messages are none.
double computing_share(const std::vector<Event>& events, const Extent& extent);

/// "forward 3" -> {"forward", "3"}: what kind of work it is, and which.
std::pair<std::string, std::string> split_name(const std::string& name);

/// The sorts of events that the drawings of `panels` show, in the order in which they first appear.
/// "forward 1" and "forward 2" are one sort.
class Legend {
 public:
  struct Entry {
    std::string name;
    char symbol;  ///< its own: a letter of the name, or = and # for messages and collectives
    bool wire;    ///< a message or a collective
  };
  explicit Legend(std::span<const Timeline> panels);
  const std::vector<Entry>& entries() const { return entries_; }
  /// The index of the event's entry.
  std::size_t of(const Event& event) const;
  bool any_waiting() const { return any_waiting_; }

 private:
  void add(const Event& event);
  std::vector<Entry> entries_;
  bool any_waiting_ = false;
};

}  // namespace fivecuts
