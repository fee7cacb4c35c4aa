#include "ch03_allreduce/experiments.hpp"

#include <algorithm>
#include <set>

#include "ch03_allreduce/numbers.hpp"
#include "common/comm/world.hpp"
#include "common/model/random.hpp"

namespace fivecuts::all_reduce {

CommonOptions inner_world(const Context& run, Device::Kind device) {
  CommonOptions options = run.options;
  options.device = device;
  options.memory_cap = MemoryLedger::unlimited;
  options.verbose = false;
  return options;
}

std::int64_t DryRun::all_sent() const {
  std::int64_t sum = 0;
  for (const Traffic& of_rank : traffic) sum += of_rank.sent;
  return sum;
}

DryRun dry_run(const Context& run, const Case& c, const Cluster& cluster, const Body& body) {
  CommonOptions options = inner_world(run, Device::Kind::meta);
  options.cluster = cluster;
  options.cluster->ranks_per_node = c.ranks_per_node;
  struct Mine {
    Traffic traffic;
    double seconds = 0;
  };
  DryRun all;
  const auto one_rank = [&](Context& context) {
    Workspace work;
    const Buffer x(context.device, Category::gradient, 1, c.count, c.type);
    body(context.world, x, work);
    Traffic traffic = context.traffic.measured();
    traffic += context.traffic.modelled();
    return Mine{traffic, context.clock.now()};
  };
  for (const auto& [traffic, seconds] : world_results<Mine>(c.ranks, options, one_rank)) {
    all.traffic.push_back(traffic);
    all.seconds = std::max(all.seconds, seconds);
  }
  return all;
}

DryRun dry_run(const Context& run, const Case& c, const Cluster& cluster,
               const NamedAlgorithm& algorithm) {
  return dry_run(run, c, cluster, [&](Communicator& comm, Tensor x, Workspace& work) {
    algorithm.run(comm, x, Reduction::sum, work);
  });
}

namespace {

bool equals_formula(const NamedAlgorithm& algorithm, const Case& c,
                    const std::vector<Traffic>& wire) {
  bool same = true;
  for (std::size_t r = 0; r < wire.size(); ++r) {
    Traffic used = wire[r];
    used.sent_inter_node = 0;
    same = same && used == algorithm.traffic(c, static_cast<int>(r));
  }
  return same;
}

/// Ranks of a node, if all nodes are alike and of consecutive ranks; else 1, which no formula is
/// asked for.
std::int64_t ranks_per_node(const Communicator& comm, const Setting& setting) {
  if (setting.ranks_per_node > 0) return setting.ranks_per_node;
  int together = 0;
  for (int r = 0; r < comm.size(); ++r) together += comm.leaves_node(r) ? 0 : 1;
  return comm.gather(together).front();
}

/// A small number for each rank and index: a float in [-1/N, 1/N), or a whole one.
double number(const Setting& s, int ranks, int rank, std::int64_t i) {
  if (s.type == DType::i64) return static_cast<double>((7 * rank + i) % 1009);
  return static_cast<double>(uniform(3, static_cast<std::uint32_t>(rank), 0, i) /
                             static_cast<float>(ranks));
}

std::vector<double> golden(const Setting& s, int ranks) {
  std::vector<double> all;
  for (std::int64_t i = 0; i < s.elements; ++i) {
    double sum = 0, most = -1e300;
    for (int r = 0; r < ranks; ++r) {
      const double one = number(s, ranks, r, i);
      sum += one;
      most = std::max(most, one);
    }
    all.push_back(s.result == Result::max ? most : s.result == Result::sum ? sum : sum / ranks);
  }
  return all;
}

Tolerance tolerance_of(DType type) {
  if (type == DType::i64) return {0, 0};
  return type == DType::bf16 ? bf16_tolerances.one_pass : f32_tolerances.one_pass;
}

void reduce(const NamedAlgorithm& algorithm, Communicator& comm, Tensor x, Result result,
            Workspace& work) {
  if (result == Result::average) return average(algorithm.run, comm, x, work);
  algorithm.run(comm, x, result == Result::sum ? Reduction::sum : Reduction::max, work);
}

LadderRow try_out(Context& context, Communicator& comm, const Setting& s,
                  const NamedAlgorithm& algorithm, const std::vector<double>& want) {
  const bool dry = context.device.dry();
  Workspace work;
  work.ranks_per_node = static_cast<int>(s.ranks_per_node);
  const Buffer x(context.device, Category::gradient, 1, s.elements, s.type);
  fill(x, [&](std::int64_t i) { return number(s, comm.size(), comm.rank(), i); });
  const std::int64_t memory = context.memory.live();
  const auto so_far = [&] {
    Traffic all = context.traffic.measured();
    all += context.traffic.modelled();
    return all;
  };
  const Traffic before = so_far();
  reduce(algorithm, comm, x, s.result, work);
  const std::int64_t kept = context.memory.live() - memory;
  LadderRow row{&algorithm, {dry, "dry"}, -1, comm.gather(so_far() - before), false, 0};
  row.by_formula = equals_formula(
      algorithm, {comm.size(), s.elements, s.type, ranks_per_node(comm, s)}, row.wire);
  row.work_memory = std::ranges::max(comm.gather(kept));
  if (dry) return row;
  const std::vector<double> got = numbers(x);
  row.result = compare(comm, algorithm.name, std::vector<float>(got.begin(), got.end()), want,
                       tolerance_of(s.type));
  const auto hashes = comm.gather(hash(x));
  row.distinct = static_cast<int>(std::set(hashes.begin(), hashes.end()).size());
  return row;
}

}  // namespace

std::vector<LadderRow> climb(Context& context, Communicator& comm, const Setting& setting) {
  std::vector<double> want;
  if (!context.device.dry()) want = golden(setting, comm.size());
  std::vector<LadderRow> rows;
  for (const NamedAlgorithm& one : all_algorithms()) {
    if (one.possible(comm)) rows.push_back(try_out(context, comm, setting, one, want));
  }
  return rows;
}

std::vector<WireRow> wire_of_worlds(const Context& run, const Setting& setting) {
  std::vector<WireRow> rows;
  for (const NamedAlgorithm& one : all_algorithms()) {
    if (!one.by_messages()) continue;
    for (const int n : {2, 3, 4, 8}) {
      const Case c{n, setting.elements, setting.type,
                   setting.ranks_per_node > 0 ? setting.ranks_per_node : 4};
      const DryRun dry = dry_run(run, c, run.clock.cluster(), one);
      rows.push_back({&one, n, dry.traffic, equals_formula(one, c, dry.traffic)});
    }
  }
  return rows;
}

}  // namespace fivecuts::all_reduce
