#include "ch02_data_parallel/experiments.hpp"

#include <algorithm>

#include "common/model/golden.hpp"

namespace fivecuts::data_parallel {
namespace {

constexpr std::int64_t climb_steps = 3;

/// The gradient sum in `replica`, divided by `samples`, against golden's mean over the global
/// batch.
Verdict compare_gradient(const Replica& replica, std::int64_t samples,
                         const std::vector<golden::Layer>& want, std::size_t global_rows,
                         const char* name, const Communicator& comm) {
  std::vector<float> got;
  std::vector<double> mean;
  for (std::size_t k = 0; k < replica.shape.size(); ++k) {
    for (const float g : copy_out(replica.gradients[k]))
      got.push_back(g / static_cast<float>(samples));
    for (const double g : golden::flat(want[k]))
      mean.push_back(g / static_cast<double>(global_rows));
  }
  return compare(comm, name, got, mean, tolerances_of(replica.precision).one_pass);
}

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
  std::vector<golden::Layer> golden_gradient;
  const bool dry = context.device.dry();
  if (!dry) {
    golden_gradient = golden::Model(model_of(o), seed)
                          .gradient(golden::matrix(rows_of(digits.train, rows), Samples::pixels),
                                    labels_of(digits.train, rows));
  }
  std::vector<RungRow> table;
  for (const auto& [name, rung] : all_rungs()) {
    Replica replica(context.device, model_of(o), seed, o.precision);
    const auto shards = load_shards(context.device, digits.train, rows, comm, 1, o.precision);
    std::int64_t calls = 0;
    const AllReduce counted = [&](Communicator& c, Tensor t) {
      ++calls;
      all_reduce(c, t);
    };
    const Traffic measured = context.traffic.measured(comm.name());
    const Traffic modelled = context.traffic.modelled(comm.name());
    Verdict gradient{dry, "not compared: a dry device has no gradient"};
    // training_step, opened to look at the gradient
    for (std::int64_t k = 0; k < climb_steps; ++k) {
      zero_gradients(replica);
      add_local_gradients(replica, shards.front());
      const auto samples =
          rung(replica, {shards.front().rows(), shards.front().global_rows}, comm, counted);
      if (k == 0 && !dry)
        gradient = compare_gradient(replica, samples, golden_gradient, rows.size(), name, comm);
      update(replica, samples, adam_of(o));
    }
    const Traffic wire = context.traffic.measured(comm.name()) - measured;
    const Traffic ring = context.traffic.modelled(comm.name()) - modelled;
    const bool library = comm.size() > 1 && ring.messages > 0;
    const auto per_step = [](const Traffic& t) {
      return Traffic{t.sent / climb_steps, t.received / climb_steps,
                     t.sent_inter_node / climb_steps, t.messages / climb_steps};
    };
    table.push_back({name, dry ? -1 : distinct_replicas(replica, comm), calls / climb_steps,
                     gradient, comm.gather(per_step(library ? ring : wire)), library});
  }
  return table;
}

Reunion bring_together(Context& context, Communicator& comm, const TrainingOptions& o) {
  Replica replica(context.device, model_of(o), static_cast<std::uint64_t>(o.seed + comm.rank()),
                  o.precision);
  const std::uint64_t before = hash(replica);
  Reunion reunion{distinct_replicas(replica, comm), 0, 0};
  broadcast_parameters(replica, comm);
  reunion.distinct_after = distinct_replicas(replica, comm);
  const auto changed = comm.gather(static_cast<char>(hash(replica) != before));
  reunion.changed_ranks = static_cast<int>(std::count(changed.begin(), changed.end(), 1));
  return reunion;
}

Standstill stand_still(Context& context, Communicator& comm, const Digits& digits,
                       const TrainingOptions& o, const AllReduce& all_reduce) {
  const auto seed = static_cast<std::uint64_t>(o.seed);
  const auto rows = batches_of(digits.train.count(), o.batch, seed, 0).front();
  const auto shards = load_shards(context.device, digits.train, rows, comm, 1, DType::bf16);
  const auto unchanged_after_steps = [&](bool keep_master) {
    Replica replica(context.device, model_of(o), seed, DType::bf16);
    std::vector<std::vector<float>> start;
    for (const Tensor parameters : replica.parameters) start.push_back(copy_out(parameters));
    for (AdamState& state : replica.optimizer) {
      if (!keep_master) state.master = Buffer();
    }
    for (int k = 0; k < Standstill::steps; ++k) {
      training_step(replica, shards.front(), comm, per_layer, all_reduce,
                    {.learning_rate = Standstill::learning_rate});
    }
    std::int64_t unchanged = 0;
    for (std::size_t k = 0; k < start.size(); ++k) {
      const auto end = copy_out(replica.parameters[k]);
      for (std::size_t i = 0; i < end.size(); ++i) unchanged += end[i] == start[k][i] ? 1 : 0;
    }
    return unchanged;
  };
  return {unchanged_after_steps(true), unchanged_after_steps(false)};
}

}  // namespace fivecuts::data_parallel
