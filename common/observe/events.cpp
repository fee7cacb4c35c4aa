#include "common/observe/events.hpp"

#include <algorithm>

namespace fivecuts {

void EventLog::record(bool on) {
  const std::lock_guard lock(mutex_);
  recording_ = on;
}

bool EventLog::recording() const {
  const std::lock_guard lock(mutex_);
  return recording_;
}

void EventLog::add(Event event) {
  const std::lock_guard lock(mutex_);
  if (recording_) events_.push_back(std::move(event));
}

std::vector<Event> EventLog::events() const {
  const std::lock_guard lock(mutex_);
  std::vector<Event> sorted = events_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Event& a, const Event& b) {
    return a.start != b.start ? a.start < b.start : a.lane < b.lane;
  });
  return sorted;
}

void EventLog::clear() {
  const std::lock_guard lock(mutex_);
  events_.clear();
}

}  // namespace fivecuts
