#include "ch07_zero/live_memory.hpp"

#include <algorithm>
#include <numeric>

#include "common/observe/svg.hpp"
#include "common/observe/time_axis.hpp"
#include "common/support/units.hpp"

namespace fivecuts::zero_redundancy {
namespace {

constexpr std::size_t parameter = 0, gradient = 1;  // in a MemoryLedger::Live

std::int64_t total(const MemoryLedger::Live& live) {
  return std::accumulate(live.begin(), live.end(), std::int64_t{0});
}

std::int64_t most(const Figure7& figure) {
  std::int64_t largest = 1;
  for (const Moment& moment : figure.moments) largest = std::max(largest, total(moment.live));
  return largest;
}

/// What a change of live bytes means.
std::string change(const MemoryLedger::Live& before, const MemoryLedger::Live& after) {
  if (after[parameter] > before[parameter]) return "gather";
  if (after[parameter] < before[parameter]) return "release";
  if (after[gradient] > before[gradient]) return "gradient";
  if (after[gradient] < before[gradient]) return "let go";
  return "";
}

/// The events worth a line: what spans are named after, and each run of messages on a lane.
std::vector<Event> worth_a_line(const std::vector<Event>& events) {
  std::vector<Event> kept;
  std::array<bool, 2> sending{};  // by lane
  for (const Event& event : events) {
    bool& in_a_run = sending[static_cast<std::size_t>(event.lane)];
    const bool message = event.kind == Event::Kind::message && event.name == "exchange";
    const bool span = event.name == "forward" || event.name == "backward" ||
                      event.name == "weight gradient" || event.name == "update";
    if (span || (message && !in_a_run)) kept.push_back(event);
    if (span) sending = {};
    if (message) in_a_run = true;
  }
  return kept;
}

struct Watched {
  std::vector<Moment> changes;
  std::vector<Event> events;
  double start = 0, seconds = 0;
};

Watched watch_step(Context& context, const World& world) {
  Trainer trainer(context.device, context.world, world.model, 1, world.settings);
  const Shard rows{Buffer(context.device, Category::activation, world.rows, world.model[0].in,
                          world.settings.precision),
                   Buffer(context.device, Category::activation, 1, world.rows, DType::i64),
                   world.rows * world.ranks};
  const std::span<const Shard> batch(&rows, 1);
  trainer.step(batch, {});  // its work memory is there from now on
  Watched watched;
  watched.start = context.clock.now();
  context.clock.log().record(true);
  MemoryLedger::Live at_rest{};
  for (const Category c : all_categories) {
    at_rest[static_cast<std::size_t>(c)] = context.memory.live(c);
  }
  watched.changes.push_back({0, "at rest", at_rest});
  context.memory.watch([&](const MemoryLedger::Live& live) {
    watched.changes.push_back({context.clock.now() - watched.start, "", live});
  });
  trainer.step(batch, {});
  context.memory.watch(nullptr);
  watched.seconds = context.clock.now() - watched.start;
  watched.events = context.clock.log().events();
  return watched;
}

}  // namespace

Figure7 figure7(const World& world) {
  CommonOptions options;
  options.device = Device::Kind::meta;
  options.cluster = world.cluster;
  const Watched watched = world_results<Watched>(world.ranks, options, [&](Context& context) {
                            return watch_step(context, world);
                          }).front();
  Figure7 figure{world.settings.stage, world.ranks,     world.settings.prefetch,
                 world.cluster->unit,  watched.seconds, {}};
  MemoryLedger::Live live{};
  std::vector<Moment> moments = watched.changes;
  for (Moment& moment : moments) {
    if (moment.what.empty()) moment.what = change(live, moment.live);
    live = moment.live;
  }
  for (const Event& event : worth_a_line(watched.events)) {
    const bool message = event.kind == Event::Kind::message;
    const char* lane = event.lane == Lane::comm ? "messages, comm lane" : "messages";
    moments.push_back({event.start - watched.start, message ? lane : event.name, {}});
  }
  // What comes at the same time as memory does, comes after it: it needs that memory.
  std::ranges::stable_sort(moments, {}, &Moment::time);
  for (Moment& moment : moments) {
    if (total(moment.live) == 0) moment.live = live;
    live = moment.live;
  }
  figure.moments = std::move(moments);
  return figure;
}

std::string figure7_text(const Figure7& figure) {
  constexpr double cells = 56;
  const double scale = cells / static_cast<double>(most(figure));
  std::string text;
  for (const Moment& moment : figure.moments) {
    if (moment.what.empty()) continue;
    std::string bar;
    double until = 0;
    for (const Category c : all_categories) {
      constexpr std::string_view letters = "PGOAW";
      until += static_cast<double>(moment.live[static_cast<std::size_t>(c)]) * scale;
      const auto cell = static_cast<std::size_t>(until + 0.5);
      if (cell > bar.size()) bar.resize(cell, letters[static_cast<std::size_t>(c)]);
    }
    text += fmt::format("  {:>9}  {:19}  {:{}}  {}\n", show_time(moment.time, figure.slots),
                        moment.what, bar, static_cast<int>(cells),
                        show_bytes(static_cast<double>(total(moment.live))));
  }
  return text + "  P parameters, G gradients, O optimizer state, A activations, W work memory\n";
}

std::string figure7_svg(const Figure7& figure) {
  constexpr double left = 70, top = 66, width = 760, height = 300;
  const double y_scale = height / static_cast<double>(most(figure));
  const double x_scale = figure.seconds > 0 ? width / figure.seconds : 0;
  const std::string title =
      fmt::format("Live memory of a rank over a step of ZeRO stage {}, {} ranks{}", figure.stage,
                  figure.ranks, figure.stage == 3 && !figure.prefetch ? ", without prefetch" : "");
  Svg svg;
  svg.text(0, 0, title, {15, Svg::Align::left, "ink", true});
  double key = 0;
  for (const Category c : all_categories) {
    svg.box({key, 16, 11, 11}, Svg::fill(static_cast<std::size_t>(c)));
    svg.text(key + 16, 26, name_of(c), {12});
    key += 34 + text_width(name_of(c), 12);
  }
  for (const double part : {0.0, 0.5, 1.0}) {
    svg.line(left, top + height * (1 - part), left + width, top + height * (1 - part), "grid");
    svg.text(left - 6, top + height * (1 - part) + 4,
             show_bytes(part * static_cast<double>(most(figure))),
             {11, Svg::Align::right, "faint"});
  }
  for (std::size_t k = 0; k < figure.moments.size(); ++k) {
    const Moment& moment = figure.moments[k];
    const double end = k + 1 < figure.moments.size() ? figure.moments[k + 1].time : figure.seconds;
    const double x = left + moment.time * x_scale, wide = (end - moment.time) * x_scale;
    if (wide <= 0) continue;
    svg.begin_group(fmt::format("{} {}: {}", show_time(moment.time, figure.slots), moment.what,
                                show_bytes(static_cast<double>(total(moment.live)))));
    double y = top + height;
    for (const Category c : all_categories) {
      const double tall = static_cast<double>(moment.live[static_cast<std::size_t>(c)]) * y_scale;
      if (tall <= 0) continue;
      y -= tall;
      svg.box({x, y, wide, tall}, Svg::fill(static_cast<std::size_t>(c)));
    }
    svg.end_group();
  }
  const TimeAxis axis(figure.seconds, width, 80, figure.slots);
  for (const TimeAxis::Tick& tick : axis.ticks()) {
    svg.line(left + tick.at, top + height, left + tick.at, top + height + 5, "faint");
    svg.text(left + tick.at, top + height + 18, tick.label, {11, Svg::Align::middle, "faint"});
  }
  return svg.document(title);
}

}  // namespace fivecuts::zero_redundancy
