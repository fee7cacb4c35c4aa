#include "ch07_zero/live_memory.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "common/observe/time_axis.hpp"
#include "common/support/units.hpp"

namespace fivecuts::zero_redundancy {
namespace {

constexpr std::size_t parameter = 0, gradient = 1;  // in a MemoryLedger::Live

/// What a change of live bytes means.
std::string change(const MemoryLedger::Live& before, const MemoryLedger::Live& after) {
  if (after[parameter] > before[parameter]) return "gather";
  if (after[parameter] < before[parameter]) return "release";
  if (after[gradient] > before[gradient]) return "gradient";
  if (after[gradient] < before[gradient]) return "let go";
  return "";
}

/// A trainer that says which layer is at work, and what its events are about.
class WatchedTrainer : public Trainer {
 public:
  WatchedTrainer(Context& context, const World& world)
      : Trainer(context.device, context.world, world.model, 1, world.settings),
        log_(context.clock.log()) {}

  std::size_t layer() const { return layer_; }  ///< whose memory comes or goes now
  /// Of each event on the compute lane, as far as the updates: the layer, and what messages are.
  const std::vector<std::pair<std::size_t, const char*>>& about() const { return about_; }
  const std::vector<std::size_t>& gathered() const { return gathered_; }  ///< on the comm lane

 protected:
  void start_gather(std::size_t k) override {
    if (settings_.stage == 3 && layers_[k].gathered == nullptr && log_.recording()) {
      gathered_.push_back(k);
    }
    const std::size_t before = std::exchange(layer_, k);
    Trainer::start_gather(k);
    layer_ = before;
  }
  void after_forward(std::size_t k, Saved& saved) override {
    note(k, "");
    layer_ = k;
    Trainer::after_forward(k, saved);
  }
  void backward(std::size_t k, Saved& saved, Tensor dy, Tensor dx, bool last) override {
    layer_ = k;
    Trainer::backward(k, saved, dy, dx, last);
  }
  void reduce(std::size_t k, Tensor whole, bool last) override {
    note(k, "");
    Trainer::reduce(k, whole, last);
    note(k, settings_.stage == 0 ? "all-reduce" : "reduce-scatter");
  }

 private:
  void note(std::size_t k, const char* messages) {
    std::size_t events = 0;
    for (const Event& event : log_.events()) events += event.lane == Lane::compute ? 1 : 0;
    about_.resize(events, {k, messages});
  }

  const EventLog& log_;
  std::size_t layer_ = 0;
  std::vector<std::pair<std::size_t, const char*>> about_;
  std::vector<std::size_t> gathered_;
};

bool is_message(const Event& event) {
  return event.kind == Event::Kind::message && event.name == "exchange";
}

/// What is computed under a name of its own, and what is sent, a run of messages in one.
std::vector<Bar> bars_of(const std::vector<Event>& events, const WatchedTrainer& trainer) {
  std::vector<Bar> bars;
  std::array<std::optional<std::size_t>, 2> sending{};  // by lane: the bar of the run
  const std::int64_t on_comm_lane = std::ranges::count_if(
      events, [](const Event& e) { return is_message(e) && e.lane == Lane::comm; });
  const std::vector<std::size_t>& gathered = trainer.gathered();
  const std::size_t of_a_gather =  // they all have as many messages
      gathered.empty() ? 1 : static_cast<std::size_t>(on_comm_lane) / gathered.size();
  std::size_t computed = 0, gathers = 0, updates = 0;
  for (const Event& event : events) {
    auto& run = sending[static_cast<std::size_t>(event.lane)];
    std::size_t layer = 0;
    std::string what = event.name;
    if (event.lane == Lane::compute) {
      updates += event.name == "update" ? 1 : 0;
      const bool before = computed < trainer.about().size();
      layer = before ? trainer.about()[computed].first : updates - 1;
      if (is_message(event)) what = before ? trainer.about()[computed].second : "all-gather";
      ++computed;
    } else if (is_message(event)) {
      if (gathers % of_a_gather == 0) run.reset();
      layer = gathered[gathers++ / of_a_gather];
      what = "all-gather";
    }
    const bool computes =
        what == "forward" || what == "backward" || what == "weight gradient" || what == "update";
    if (computes || (is_message(event) && !run)) {
      bars.push_back({what, fmt::format("{} {}", what, layer + 1), event.start, event.end});
      run = bars.size() - 1;
    }
    if (is_message(event)) bars[*run].end = event.end;
    if (computes) run.reset();
  }
  return bars;
}

struct Watched {
  std::vector<Moment> changes;
  std::vector<Bar> bars;
  double seconds = 0;
};

Watched watch_step(Context& context, const World& world) {
  WatchedTrainer trainer(context, world);
  const Shard rows{Buffer(context.device, Category::activation, world.rows, world.model[0].in,
                          world.settings.precision),
                   Buffer(context.device, Category::activation, 1, world.rows, DType::i64),
                   world.rows * world.ranks};
  const std::span<const Shard> batch(&rows, 1);
  trainer.step(batch, {});  // its work memory is there from now on
  Watched watched;
  const double start = context.clock.now();
  context.clock.log().record(true);
  MemoryLedger::Live at_rest{};
  for (const Category c : all_categories) {
    at_rest[static_cast<std::size_t>(c)] = context.memory.live(c);
  }
  watched.changes.push_back({0, "at rest", at_rest});
  context.memory.watch([&](const MemoryLedger::Live& live) {
    std::string what = change(watched.changes.back().live, live);
    if (!what.empty()) what += fmt::format(" {}", trainer.layer() + 1);
    watched.changes.push_back({context.clock.now() - start, what, live});
  });
  trainer.step(batch, {});
  context.memory.watch(nullptr);
  watched.seconds = context.clock.now() - start;
  watched.bars = bars_of(context.clock.log().events(), trainer);
  for (Bar& bar : watched.bars) bar.start -= start, bar.end -= start;
  return watched;
}

/// From `began` of a layer to `ended`, each time.
void add_whole(Figure7& figure, const char* began, const char* ended) {
  for (auto from = figure.moments.begin(); from != figure.moments.end(); ++from) {
    if (!from->what.starts_with(began) || from->what.size() == std::strlen(began)) continue;
    const std::string layer = from->what.substr(std::strlen(began));
    const auto to = std::find_if(from, figure.moments.end(),
                                 [&](const Moment& m) { return m.what == ended + layer; });
    if (to == figure.moments.end()) continue;
    figure.bars.push_back(
        {"layer" + layer, fmt::format("{}–{}", began, ended), from->time, to->time});
  }
}

}  // namespace

std::int64_t Moment::total() const {
  return std::accumulate(live.begin(), live.end(), std::int64_t{0});
}

std::int64_t Figure7::most() const {
  std::int64_t largest = 1;
  for (const Moment& moment : moments) largest = std::max(largest, moment.total());
  return largest;
}

Figure7 figure7(const World& world) {
  CommonOptions options;
  options.device = Device::Kind::meta;
  options.cluster = world.cluster;
  const Watched watched = world_results<Watched>(world.ranks, options, [&](Context& context) {
                            return watch_step(context, world);
                          }).front();
  Figure7 figure{world.settings.stage, world.ranks,     world.settings.prefetch,
                 world.cluster->unit,  watched.seconds, watched.changes,
                 watched.bars};
  for (const Bar& bar : watched.bars) figure.moments.push_back({bar.start, bar.what, {}});
  // What comes at the same time as memory does, comes after it: it needs that memory.
  std::ranges::stable_sort(figure.moments, {}, &Moment::time);
  MemoryLedger::Live live{};
  for (Moment& moment : figure.moments) {
    if (moment.total() == 0) moment.live = live;
    live = moment.live;
  }
  add_whole(figure, "gather", "release");
  add_whole(figure, "gradient", "let go");
  std::ranges::stable_sort(figure.bars, {}, &Bar::start);
  return figure;
}

std::string figure7_text(const Figure7& figure) {
  constexpr double cells = 56;
  const double scale = cells / static_cast<double>(figure.most());
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
    text += fmt::format("  {:>9}  {:17}  {:{}}  {}\n", show_time(moment.time, figure.slots),
                        moment.what, bar, static_cast<int>(cells),
                        show_bytes(static_cast<double>(moment.total())));
  }
  return text + "  P parameters, G gradients, O optimizer state, A activations, W work memory\n" +
         "  gather k: room for all of layer k, which the all-gather k fills; let go k: of its "
         "whole "
         "gradient\n";
}

}  // namespace fivecuts::zero_redundancy
