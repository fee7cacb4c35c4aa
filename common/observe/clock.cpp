#include "common/observe/clock.hpp"

#include <algorithm>

namespace fivecuts {
namespace {
thread_local Lane this_lane = Lane::compute;

double seconds(const Cluster& cluster, const Work& work) {
  if (cluster.unit) return 0;
  const double peak = work.half ? cluster.peak_bf16 : cluster.peak_f32;
  const double reached = work.thinnest > 0 ? peak * cluster.efficiency(work.thinnest) : peak;
  return std::max(work.flops / reached, work.bytes / cluster.memory_bandwidth) + cluster.overhead;
}
}  // namespace

Lane lane_of_this_thread() { return this_lane; }
void this_thread_is(Lane lane) { this_lane = lane; }

void Clock::compute(const char* name, const Work& work) {
  if (!on()) return;
  LaneState& l = lane();
  const double from = l.now;
  l.now += seconds(*cluster_, work);
  if (l.depth == 0 && l.now > from) {
    log_.add({Event::Kind::compute, this_lane, name, from, l.now, 0, 0, {}});
  }
}

Clock::Span Clock::span(const char* name) {
  LaneState& l = lane();
  if (!on()) return Span(nullptr);
  if (l.depth++ == 0) {
    l.span = name;
    l.span_since = l.now;
  }
  return Span(this);
}

Clock::Span::~Span() {
  if (clock_ == nullptr) return;
  LaneState& l = clock_->lane();
  if (--l.depth > 0) return;
  if (clock_->cluster_->unit) l.now += 1;
  clock_->close_part(l);
}

void Clock::close_part(LaneState& l) {
  if (l.now > l.span_since) {
    log_.add({Event::Kind::compute, this_lane, l.span, l.span_since, l.now, 0, 0, {}});
  }
  l.span_since = l.now;
}

Clock::Sent Clock::send(std::int64_t bytes, bool inter_node) {
  if (!on()) return {};
  LaneState& l = lane();
  const double departs = std::max(l.now, l.out_free);
  l.out_free = departs + static_cast<double>(bytes) / cluster_->link(inter_node).bandwidth;
  return {departs, l.out_free};
}

Clock::Received Clock::receive(double departed, std::int64_t bytes, bool inter_node) {
  if (!on()) return {};
  LaneState& l = lane();
  const Link& link = cluster_->link(inter_node);
  const double starts = std::max(departed + link.latency, l.in_free);
  l.in_free = starts + static_cast<double>(bytes) / link.bandwidth;
  return {starts, l.in_free};
}

void Clock::idle_until(double time) {
  LaneState& l = lane();
  l.now = std::max(l.now, time);
}

void Clock::wait_until(double time, Event event) {
  if (!on()) return;
  LaneState& l = lane();
  if (!(time > l.now)) return;
  if (l.depth > 0) close_part(l);
  event.lane = this_lane;
  event.start = l.now;
  event.end = time;
  l.now = l.span_since = time;
  log_.add(std::move(event));
}

}  // namespace fivecuts
