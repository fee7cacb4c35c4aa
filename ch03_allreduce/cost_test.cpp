// The formulas of the times against the clock.
#include "ch03_allreduce/test_cases.hpp"
#include "common/comm/world.hpp"

namespace fivecuts::all_reduce {
namespace {

/// Until the last rank of a dry world has ended.
double on_the_clock(const NamedAlgorithm& one, int ranks, std::int64_t count, DType type,
                    const Cluster& cluster) {
  CommonOptions options;
  options.device = Device::Kind::meta;
  options.cluster = cluster;
  options.guard = false;
  const auto seconds = world_results<double>(ranks, options, [&](Context& context) {
    Workspace work;
    const Buffer x(context.device, Category::gradient, 1, count, type);
    one.run(context.world, x, Reduction::sum, work);
    return context.clock.now();
  });
  return *std::max_element(seconds.begin(), seconds.end());
}

bool in_memory(const NamedAlgorithm& one) { return one.by == NamedAlgorithm::By::memory; }

/// Clusters of which all ranks are one node, or each its own: fast and slow adding.
std::vector<Cluster> uniform_clusters() {
  std::vector<Cluster> all = {load_cluster("laptop"), load_cluster("slow"), load_cluster("h100")};
  all.back().ranks_per_node = 0;
  Cluster slow_adding = load_cluster("laptop");
  slow_adding.memory_bandwidth /= 100;
  all.push_back(slow_adding);
  return all;
}

ONE_RANK_TEST(Cost, IsTheClocks) {
  for (const Cluster& cluster : uniform_clusters()) {
    for (const int n : {1, 2, 3, 4, 5, 6, 7, 8, 11, 16}) {
      for (const std::int64_t count : {0, 1, n + 1, 1857, 1'000'000, 8'388'608}) {
        for (const NamedAlgorithm& one : all_algorithms()) {
          if (in_memory(one) && n > 1 && cluster.ranks_per_node == 1) continue;
          const DType type = count % 2 == 0 ? DType::f32 : DType::bf16;
          const double clock = on_the_clock(one, n, count, type, cluster);
          EXPECT_NEAR(cost(one, n, count, type, cluster), clock, 1e-9 * clock)
              << one.name << " of " << count << " on " << n << " of " << cluster.name;
        }
      }
    }
  }
}

/// Ranks, and how many of them share a node: full nodes and others.
constexpr std::pair<int, int> layouts[] = {{4, 2}, {8, 4}, {16, 8}, {6, 2}, {9, 3},
                                           {8, 2}, {5, 2}, {7, 3},  {6, 4}, {12, 5}};

/// h100 with nodes of another size; or with adding so slow that messages queue behind it.
Cluster nodes_of(std::int64_t per_node, bool slow_adding = false) {
  Cluster cluster = load_cluster("h100");
  cluster.ranks_per_node = per_node;
  if (slow_adding) cluster.memory_bandwidth /= 1000;
  return cluster;
}

// Slow links between the nodes, from where latency decides to where bandwidth does; chunks that
// come out even (576) and do not.
ONE_RANK_TEST(Cost, OnSeveralNodes) {
  for (const auto& [n, per_node] : layouts) {
    for (const std::int64_t count : {0, 1, 576, 57'599, 5'760'000, 575'999'999}) {
      for (const bool slow_adding : {false, true}) {
        const Cluster cluster = nodes_of(per_node, slow_adding);
        for (const NamedAlgorithm& one : all_algorithms()) {
          if (in_memory(one)) continue;  // no node has it all
          const double clock = on_the_clock(one, n, count, DType::f32, cluster);
          EXPECT_NEAR(cost(one, n, count, DType::f32, cluster), clock, 1e-9 * clock)
              << one.name << " of " << count << " on " << n << " ranks, " << per_node << " a node";
        }
      }
    }
  }
}

ONE_RANK_TEST(Cost, OnEightNodesOfEight) {
  for (const std::int64_t count : {57'600, 5'760'001}) {
    for (const NamedAlgorithm& one : all_algorithms()) {
      if (in_memory(one)) continue;
      const double clock = on_the_clock(one, 64, count, DType::f32, nodes_of(8));
      EXPECT_NEAR(cost(one, 64, count, DType::f32, nodes_of(8)), clock, 1e-9 * clock) << one.name;
    }
  }
}

// The formulas as they are taught: free adding, N a power of two, N | D.
RANK_TEST(Cost, IsWhatTheBooksSay) {
  Cluster cluster;
  cluster.peak_f32 = cluster.peak_bf16 = cluster.memory_bandwidth = 1e30;
  cluster.intra_node = {100, 4};  // one element a second
  const auto seconds = [&](const char* name, int n, std::int64_t count) {
    return cost(algorithm(name), n, count, DType::f32, cluster);
  };
  EXPECT_DOUBLE_EQ(seconds("gather_broadcast", 4, 8), 2 * 100 + 2 * 3 * 8);
  EXPECT_DOUBLE_EQ(seconds("full_exchange", 4, 8), 100 + 3 * 8);
  EXPECT_DOUBLE_EQ(seconds("ring", 4, 8), 6 * 100 + 12);
  EXPECT_DOUBLE_EQ(seconds("tree", 4, 8), 4 * 100 + 4 * 8);
  EXPECT_DOUBLE_EQ(seconds("halving_doubling", 4, 8), 4 * 100 + 12);
  EXPECT_DOUBLE_EQ(seconds("ring", 64, 64), 126 * 100 + 126);
  EXPECT_DOUBLE_EQ(seconds("halving_doubling", 64, 64), 12 * 100 + 126);
}

}  // namespace
}  // namespace fivecuts::all_reduce
