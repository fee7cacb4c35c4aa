#include "ch02_data_parallel/experiments.hpp"

#include <algorithm>
#include <set>

namespace fivecuts::data_parallel {
namespace {

constexpr std::int64_t climb_steps = 3;

}  // namespace

std::span<const NamedRung> all_rungs() {
  static constexpr NamedRung rungs[] = {{"none", none},
                                        {"gather_broadcast", gather_broadcast},
                                        {"per_tensor", per_tensor},
                                        {"per_layer", per_layer},
                                        {"copied_bucket", copied_bucket}};
  return rungs;
}

std::vector<RungRow> climb(Context& context, Communicator& comm, const Digits& digits,
                           const TrainingOptions& o, const AllReduce& all_reduce) {
  const auto seed = static_cast<std::uint64_t>(o.seed);
  const auto rows = batches_of(digits.train.count(), o.batch, seed, 0).front();
  std::vector<RungRow> table;
  for (const auto& [name, rung] : all_rungs()) {
    Replica replica(context.device, model_of(o), seed);
    const auto shards = load_shards(context.device, digits.train, rows, comm, 1);
    std::int64_t calls = 0;
    const AllReduce counted = [&](Communicator& c, Tensor t) {
      ++calls;
      all_reduce(c, t);
    };
    const Traffic measured = context.traffic.measured(comm.name());
    const Traffic modelled = context.traffic.modelled(comm.name());
    for (std::int64_t k = 0; k < climb_steps; ++k) {
      training_step(replica, shards.front(), comm, rung, counted, adam_of(o));
    }
    const Traffic wire = context.traffic.measured(comm.name()) - measured;
    const Traffic ring = context.traffic.modelled(comm.name()) - modelled;
    const bool library = comm.size() > 1 && ring.messages > 0;
    const auto per_step = [](const Traffic& t) {
      return Traffic{t.sent / climb_steps, t.received / climb_steps, t.sent_inter_node / climb_steps,
                     t.messages / climb_steps};
    };
    table.push_back({name, distinct_replicas(replica, comm), calls / climb_steps,
                     comm.gather(per_step(library ? ring : wire)), library});
  }
  return table;
}

Reunion bring_together(Context& context, Communicator& comm, const TrainingOptions& o) {
  Replica replica(context.device, model_of(o), static_cast<std::uint64_t>(o.seed + comm.rank()));
  const std::uint64_t before = hash(replica);
  Reunion reunion{distinct_replicas(replica, comm), 0, 0};
  broadcast_parameters(replica, comm);
  reunion.distinct_after = distinct_replicas(replica, comm);
  const auto changed = comm.gather(static_cast<char>(hash(replica) != before));
  reunion.changed_ranks = static_cast<int>(std::count(changed.begin(), changed.end(), 1));
  return reunion;
}

}  // namespace fivecuts::data_parallel
