#include "ch02_data_parallel/report.hpp"

#include <algorithm>

#include "common/observe/table.hpp"
#include "common/observe/time_axis.hpp"

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
                    : DryModel{ModelShape(4, {10'000, 10'000, false, true, false}), 512};
  times.ranks = own ? context.size() : 4;
  if (context.rank() == 0) {
    const Cluster& cluster = context.clock.cluster();
    for (const NamedStep& step : all_steps(all_reduce)) {
      times.steps.push_back(time_step(step, times.model, times.ranks, cluster));
      times.scaling.push_back(weak_scaling(step, times.model, cluster));
    }
  }
  context.world.barrier();
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

}  // namespace fivecuts::data_parallel
