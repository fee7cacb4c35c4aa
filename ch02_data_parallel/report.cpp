#include "ch02_data_parallel/report.hpp"

#include <algorithm>

#include "common/observe/gantt.hpp"
#include "common/observe/table.hpp"
#include "common/observe/time_axis.hpp"
#include "common/observe/trace.hpp"

namespace fivecuts::data_parallel {

std::string ladder_table(const std::vector<RungRow>& ladder) {
  Table table({"rung", "gradient", "replicas", "reductions", "rank 0 sends", "the last",
               "all ranks", "bytes"});
  for (const RungRow& row : ladder) {
    std::int64_t all = 0;
    for (const Traffic& of_rank : row.wire) all += of_rank.sent;
    const bool dry = row.distinct_replicas < 0;
    table.row({row.name,
               dry               ? "dry"
               : row.gradient.ok ? "golden"
                                 : "differs",
               dry ? "dry" : std::to_string(row.distinct_replicas), std::to_string(row.calls),
               std::to_string(row.wire.front().sent), std::to_string(row.wire.back().sent),
               std::to_string(all), row.modelled ? "modelled" : "measured"});
  }
  return table.text();
}

bool sums_are_golden(const std::vector<RungRow>& ladder) {
  return std::all_of(ladder.begin() + 1, ladder.end(), [](const RungRow& row) {
    return row.gradient.ok && row.distinct_replicas <= 1;
  });
}

std::vector<Timeline> Times::timelines() const {
  std::vector<Timeline> all;
  for (const TimedStep& step : steps) all.push_back(step.timeline);
  return all;
}

Times time_steps(const Context& context, const TrainingOptions& o, const AllReduce& all_reduce) {
  Times times;
  const bool own = context.device.dry();
  times.model = own ? DryModel{model_of(o), part_of(o.batch, context.size(), 0).count}
                    : DryModel{ModelShape(4, {10'000, 10'000, true, true, false}), 512};
  times.model.precision = o.precision;
  times.ranks = own ? context.size() : 4;
  context.world.on_rank_0([&] {
    const Cluster& cluster = context.clock.cluster();
    for (const NamedStep& step : all_steps(all_reduce)) {
      times.steps.push_back(time_step(step, times.model, times.ranks, cluster));
      times.scaling.push_back(weak_scaling(step, times.model, cluster));
    }
    return std::string();
  });
  return times;
}

std::string figure(const Times& times, const std::string& cluster) {
  return timeline_svg(times.timelines(), "One step of data parallelism on " + cluster);
}

std::string scaling_table(const Times& times) {
  std::vector<std::string> header = {"step", "1 rank"};
  for (const int ranks : scaling_ranks) header.push_back(fmt::format("{} ranks", ranks));
  Table table(header);
  for (const auto& [name, alone, efficiencies] : times.scaling) {
    const bool slots = !times.steps.empty() && times.steps.front().timeline.slots;
    std::vector<std::string> row = {name, show_time(alone, slots)};
    for (const auto& [ranks, efficiency] : efficiencies) {
      row.push_back(fmt::format("{:.1f} %", 100 * efficiency));
    }
    table.row(row);
  }
  return table.text();
}

bool training_follows_golden(Context& context, Communicator& dp, const Digits& digits,
                             const TrainingOptions& o, TrainingResult& result) {
  context.say("Training on {} digits, {} held out{}\n  epoch  loss     golden   accuracy  golden\n",
              digits.train.count(), digits.test.count(),
              o.overlap ? ", reductions overlapped" : "");
  result = train(context, dp, digits, o, library_all_reduce, [&](std::size_t n, const Epoch& e) {
    context.say("  {:5}  {:.4f}   {:.4f}   {:6.2f} %  {:6.2f} %\n", n, e.loss, e.golden_loss,
                100 * e.accuracy, 100 * e.golden_accuracy);
  });
  context.say("golden, after {} steps: {}\n", std::min(result.steps, early_steps),
              result.early.text);
  if (!follows_to_the_end(o)) {
    context.say(
        "golden, at the end: not judged, since with these options rounding grows too far\n\n");
    return result.early.ok;
  }
  context.say("golden, at the end: {}\ngolden, all epochs: {}\n\n", result.weights.text,
              result.loss.text);
  return result.early.ok && result.weights.ok && result.loss.ok;
}

void show_standstill(Context& context, Communicator& dp, const Digits& digits,
                     const TrainingOptions& o) {
  const Standstill still = stand_still(context, dp, digits, o, library_all_reduce);
  const auto percent = [&](std::int64_t unchanged) {
    return 100.0 * static_cast<double>(unchanged) /
           static_cast<double>(parameter_count(model_of(o)));
  };
  context.say(
      "bf16 after {} steps of at most {}: {:.1f} % of the parameters have not moved, without "
      "master "
      "weights {:.1f} %\n\n",
      Standstill::steps, Standstill::learning_rate, percent(still.with_master),
      percent(still.without));
}

void show_times(const Context& context, const Times& times,
                const std::optional<OutputFile>& figure_file,
                const std::optional<OutputFile>& trace_file) {
  const std::string& cluster = context.clock.cluster().name;
  context.say(
      "A step on the virtual cluster '{}': {} parameters in {}, {} rows a rank, dry. Weak scaling:\n"
      "the time of one rank over that of many\n{}\n",
      cluster, parameter_count(times.model.shape), name_of_precision(times.model.precision),
      times.model.rows, scaling_table(times));
  if (context.rank() != 0) return;
  const auto panels = times.timelines();
  for (const Timeline& panel : panels) {
    const bool shown =
        panel.title.starts_with("per_layer") || panel.title.starts_with("overlapped");
    if (shown) context.say("{}\n", gantt(panel));
  }
  if (figure_file) figure_file->write(figure(times, cluster));
  if (trace_file) trace_file->write(chrome_trace(panels));
}

}  // namespace fivecuts::data_parallel
