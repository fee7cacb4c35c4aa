#include "ch03_allreduce/timing.hpp"

#include <algorithm>
#include <cmath>

#include "common/observe/table.hpp"
#include "common/observe/time_axis.hpp"
#include "common/support/units.hpp"

namespace fivecuts::all_reduce {

namespace {

/// From 1 KB to 1 GB, in chunks that come out even on up to 64 ranks.
std::vector<std::int64_t> sizes() {
  std::vector<std::int64_t> all;
  for (std::int64_t bytes = 1024; bytes < 2'000'000'000; bytes *= 10) all.push_back(bytes);
  return all;
}

}  // namespace

std::size_t Sweep::fastest(std::size_t size) const {
  std::size_t best = 0;
  for (std::size_t k = 1; k < seconds.size(); ++k) {
    if (seconds[k][size] < seconds[best][size] * (1 - 1e-9)) best = k;
  }
  return best;
}

Case on_nodes(const Context& run, int ranks, std::int64_t per_node) {
  const std::int64_t fit = run.clock.cluster().ranks_per_node;
  if (per_node == 0 || (fit > 0 && fit < per_node)) per_node = fit;
  return {.ranks = ranks, .ranks_per_node = per_node < ranks ? per_node : 0};
}

std::string layout(const Case& c) {
  const std::int64_t per_node = c.ranks_per_node;
  if (per_node == 0) return fmt::format("{} ranks, one node", c.ranks);
  if (per_node == 1) return fmt::format("{} ranks, a node each", c.ranks);
  if (c.ranks % per_node != 0) return fmt::format("{} ranks, {} a node", c.ranks, per_node);
  return fmt::format("{} nodes of {} ranks", c.ranks / per_node, per_node);
}

namespace {

Sweep sweep(const Context& run, const std::string& title, Case c, Cluster cluster) {
  Sweep all{title, {}, sizes(), {}, true};
  cluster.ranks_per_node = c.ranks_per_node;
  for (const NamedAlgorithm& one : all_algorithms()) {
    const bool hierarchical = one.name == std::string("hierarchical");
    if (!one.by_messages() || (hierarchical && c.ranks_per_node < 2)) continue;
    all.algorithms.push_back(&one);
    std::vector<double>& seconds = all.seconds.emplace_back();
    for (const std::int64_t bytes : all.bytes) {
      c.count = bytes / size_of(c.type);
      seconds.push_back(dry_run(run, c, cluster, one).seconds);
      const double formula = cost(one, c.ranks, c.count, c.type, cluster);
      all.by_formula = all.by_formula && std::abs(seconds.back() - formula) <= 1e-9 * formula;
    }
  }
  return all;
}

}  // namespace

Sweep sweep_sizes(const Context& run, Case c) {
  return sweep(run, layout(c), c, run.clock.cluster());
}

Sweep sweep_slow_halves(const Context& run, int ranks) {
  Cluster cluster = run.clock.cluster();
  const std::int64_t half = (ranks + 1) / 2, node = on_nodes(run, ranks).ranks_per_node;
  if (node == 1 || (node > 0 && node < half)) cluster.intra_node = cluster.inter_node;
  cluster.inter_node = cluster.intra_node;
  cluster.inter_node.bandwidth /= slow_times;
  return sweep(run, fmt::format("{} ranks, a tenth between two halves", ranks),
               {.ranks = ranks, .ranks_per_node = half}, cluster);
}

std::vector<Crossing> crossings(const Context& run, int ranks) {
  std::vector<Crossing> all;
  const auto pair = [&](const char* first, const char* second) {
    Crossing crossing{&algorithm(first), &algorithm(second), {}};
    const auto second_is_faster = [&](std::int64_t count) {
      Case c = on_nodes(run, ranks);
      c.count = count;
      const auto seconds = [&](const NamedAlgorithm& one) {
        return dry_run(run, c, run.clock.cluster(), one).seconds;
      };
      return seconds(*crossing.second) < seconds(*crossing.first) * (1 - 1e-9);
    };
    std::int64_t no = 1, yes = 250'000'000;
    if (second_is_faster(no)) {
      crossing.bytes = 0;
    } else if (second_is_faster(yes)) {
      while (yes - no > std::max<std::int64_t>(1, no / 1000)) {
        const std::int64_t middle = no + (yes - no) / 2;
        (second_is_faster(middle) ? yes : no) = middle;
      }
      crossing.bytes = yes * size_of(DType::f32);
    }
    all.push_back(crossing);
  };
  pair("tree", "ring");
  pair("tree", "halving_doubling");
  pair("halving_doubling", "ring");
  pair("full_exchange", "ring");
  return all;
}

Cluster bare_links(double latency, double bytes_per_second) {
  Cluster cluster;
  cluster.name = "bare links";
  cluster.peak_f32 = cluster.peak_bf16 = cluster.memory_bandwidth = 1e30;
  cluster.intra_node = cluster.inter_node = {latency, bytes_per_second};
  return cluster;
}

DryRun between_slow_halves(const Context& run, Case c, const NamedAlgorithm& algorithm) {
  Cluster cluster = bare_links(0, static_cast<double>(size_of(c.type)));
  cluster.inter_node.bandwidth /= slow_times;
  c.ranks_per_node = c.ranks / 2;
  return dry_run(run, c, cluster, algorithm);
}

Terms terms(const Context& run, int ranks) {
  Terms all{ranks, {}};
  const Case c{ranks, 64 * ranks};
  const Cluster ports = bare_links(0, static_cast<double>(c.count * size_of(c.type)));
  for (const NamedAlgorithm& one : all_algorithms()) {
    if (!one.by_messages()) continue;
    const DryRun slow = between_slow_halves(run, c, one);
    std::int64_t crosses[2] = {0, 0};
    for (int r = 0; r < ranks; ++r) {
      crosses[r / (ranks / 2)] += slow.traffic[static_cast<std::size_t>(r)].sent_inter_node;
    }
    const auto tensor = static_cast<double>(c.count * size_of(c.type));
    all.rows.push_back({&one, dry_run(run, c, ports, one).seconds,
                        slow.seconds / static_cast<double>(c.count),
                        slow_times * static_cast<double>(std::max(crosses[0], crosses[1])) / tensor,
                        dry_run(run, c, bare_links(1, 1e30), one).seconds});
  }
  return all;
}

std::string terms_table(const std::vector<Terms>& all) {
  std::vector<std::string> header = {"algorithm"};
  for (const Terms& one : all) {
    header.push_back(fmt::format("N = {}: D/B", one.ranks));
    header.insert(header.end(), {"slow", "cable", "α"});
  }
  Table table(header);
  for (std::size_t a = 0; a < all.front().rows.size(); ++a) {
    std::vector<std::string> row = {all.front().rows[a].algorithm->name};
    for (const Terms& one : all) {
      for (const double term :
           {one.rows[a].ports, one.rows[a].slow, one.rows[a].cable, one.rows[a].latencies}) {
        row.push_back(term < 1000 ? fmt::format("{:.4g}", term) : fmt::format("{:.0f}", term));
      }
    }
    table.row(row);
  }
  return table.text();
}

double weak_scaling(const Context& run, int ranks, double wire, double latency) {
  const std::int64_t count = 64 * ranks;
  Cluster cluster = bare_links(latency, static_cast<double>(count) * 4 / wire);
  const auto step = [&](Communicator& comm, Tensor x, Workspace& work) {
    x.device()->book("computing", {.flops = cluster.peak_f32});
    ring(comm, x, Reduction::sum, work);
  };
  const auto seconds = [&](int n) { return dry_run(run, {n, count}, cluster, step).seconds; };
  return seconds(1) / seconds(ranks);
}

std::string times_table(const Sweep& sweep) {
  std::vector<std::string> header = {"size"};
  for (const NamedAlgorithm* one : sweep.algorithms) header.emplace_back(one->name);
  Table table(header);
  for (std::size_t k = 0; k < sweep.bytes.size(); ++k) {
    std::vector<std::string> row = {show_bytes(static_cast<double>(sweep.bytes[k]))};
    for (std::size_t a = 0; a < sweep.algorithms.size(); ++a) {
      const char* mark = a == sweep.fastest(k) ? " *" : "";
      row.push_back(show_time(sweep.seconds[a][k]) + mark);
    }
    table.row(row);
  }
  return table.text();
}

}  // namespace fivecuts::all_reduce
