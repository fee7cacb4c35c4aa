#include "common/observe/trace.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "common/support/error.hpp"

namespace fivecuts {
namespace {

using nlohmann::json;

const char* name_of(Event::Kind kind) {
  if (kind == Event::Kind::compute) return "compute";
  return kind == Event::Kind::message ? "message" : "collective";
}

json metadata(const char* name, std::size_t pid, std::size_t tid, json args) {
  return {{"ph", "M"}, {"name", name}, {"pid", pid}, {"tid", tid}, {"args", std::move(args)}};
}

/// Start and end are rounded alone and the duration is their difference: a viewer drops an event
/// that begins one nanosecond before the last one ends.
json complete(const Event& event, std::size_t pid, std::size_t tid, double begin) {
  const std::int64_t start = std::llround((event.start - begin) * 1e9);
  const std::int64_t end = std::llround((event.end - begin) * 1e9);
  json args = {{"bytes", event.bytes}, {"waited_us", event.waited * 1e6}};
  if (!event.communicator.empty()) args["communicator"] = event.communicator;
  return {{"ph", "X"},
          {"name", event.name},
          {"cat", name_of(event.kind)},
          {"pid", pid},
          {"tid", tid},
          {"ts", static_cast<double>(start) / 1000},
          {"dur", static_cast<double>(end - start) / 1000},
          {"args", std::move(args)}};
}

void add_lane(json& out, const std::vector<Event>& events, Lane lane, std::size_t pid,
              std::size_t rank, double begin) {
  const bool comm = lane == Lane::comm;
  const std::size_t tid = 2 * rank + (comm ? 1 : 0);
  out.push_back(metadata("thread_name", pid, tid,
                         {{"name", fmt::format("rank {}{}", rank, comm ? " comm" : "")}}));
  out.push_back(metadata("thread_sort_index", pid, tid, {{"sort_index", tid}}));
  for (const Event& event : events) {
    if (event.lane == lane) out.push_back(complete(event, pid, tid, begin));
  }
}

}  // namespace

std::string chrome_trace(std::span<const Timeline> panels) {
  json out = json::array();
  for (std::size_t p = 0; p < panels.size(); ++p) {
    const std::size_t pid = p + 1;  // process 0 is the idle task to a viewer
    const Extent extent = extent_of(panels[p]);
    require(extent.total() < 9e9, "a trace counts nanoseconds and ends after 292 years");
    out.push_back(metadata("process_name", pid, 0, {{"name", panels[p].title}}));
    out.push_back(metadata("process_sort_index", pid, 0, {{"sort_index", pid}}));
    for (std::size_t rank = 0; rank < panels[p].ranks.size(); ++rank) {
      const std::vector<Event>& events = panels[p].ranks[rank];
      for (const Lane lane : {Lane::compute, Lane::comm}) {
        if (uses(events, lane)) add_lane(out, events, lane, pid, rank, extent.begin);
      }
    }
  }
  const json trace = {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(out)}};
  return trace.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace fivecuts
