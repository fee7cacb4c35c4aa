#include "ch02_data_parallel/timing.hpp"

#include <algorithm>
#include <limits>

#include "common/observe/time_axis.hpp"

namespace fivecuts::data_parallel {
namespace {

Shard dry_shard(Device& device, const DryModel& model, int ranks) {
  return {Buffer(device, Category::activation, model.rows, model.shape.front().in, model.precision),
          Buffer(device, Category::activation, 1, model.rows, DType::i64), model.rows * ranks};
}

struct RankStep {
  double seconds = 0;
  std::vector<Event> events;
};

}  // namespace

std::vector<NamedStep> all_steps(const AllReduce& all_reduce) {
  std::vector<NamedStep> steps;
  for (const auto& [name, rung] : all_rungs()) {
    steps.push_back({name, [rung = rung, all_reduce](Replica& r, const Shard& s, Communicator& c) {
                       training_step(r, s, c, rung, all_reduce, {});
                     }});
  }
  steps.push_back({"overlapped", [all_reduce](Replica& r, const Shard& s, Communicator& c) {
                     overlapped_step(r, s, c, all_reduce, {});
                   }});
  return steps;
}

NamedStep step_of(const std::string& name, const AllReduce& all_reduce) {
  const auto steps = all_steps(all_reduce);
  return *std::find_if(steps.begin(), steps.end(),
                       [&](const NamedStep& s) { return s.name == name; });
}

TimedStep time_step(const NamedStep& step, const DryModel& model, int ranks,
                    const Cluster& cluster) {
  CommonOptions dry;
  dry.device = Device::Kind::meta;
  dry.cluster = cluster;
  const auto of_ranks = world_results<RankStep>(ranks, dry, [&](Context& context) {
    Communicator dp = context.world.split("dp", [](int) { return 0; });
    Replica replica(context.device, model.shape, 1, model.precision);
    const Shard shard = dry_shard(context.device, model, ranks);
    const double start = context.clock.now();
    context.clock.log().record(true);
    step.step(replica, shard, dp);
    return RankStep{context.clock.now() - start, context.clock.log().events()};
  });
  TimedStep timed;
  for (const auto& [seconds, events] : of_ranks) {
    timed.seconds = std::max(timed.seconds, seconds);
    timed.timeline.ranks.push_back(events);
  }
  timed.timeline.slots = cluster.unit;
  timed.timeline.title = fmt::format("{}, {} ranks", step.name, ranks);
  return timed;
}

Scaling weak_scaling(const NamedStep& step, const DryModel& model, const Cluster& cluster) {
  Scaling scaling{step.name, time_step(step, model, 1, cluster).seconds, {}};
  for (const int ranks : scaling_ranks) {
    scaling.efficiencies.emplace_back(
        ranks, scaling.alone / time_step(step, model, ranks, cluster).seconds);
  }
  return scaling;
}

NotesTimes notes_times(const AllReduce& all_reduce) {
  const int ranks = 3;
  const DryModel model{mlp_shape(30, 30, 30, 4, false), 30};  // chunks of a third each
  // A cluster that does nothing but products, first at 1 FLOP/s and with free messages.
  Cluster cluster;
  cluster.peak_f32 = 1;
  cluster.memory_bandwidth = std::numeric_limits<double>::infinity();
  cluster.peak_f32 = time_step(step_of("none", all_reduce), model, 1, cluster).seconds;
  const double bytes = 4.0 * static_cast<double>(parameter_count(model.shape));
  cluster.intra_node.bandwidth = bytes / 0.1;
  const auto seconds = [&](const char* name, int n) {
    return time_step(step_of(name, all_reduce), model, n, cluster).seconds;
  };
  return {seconds("none", 1), seconds("per_layer", ranks), seconds("overlapped", ranks)};
}

}  // namespace fivecuts::data_parallel
