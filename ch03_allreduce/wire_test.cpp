// Bytes on the wire are those of the formulas, to the byte, and work memory is what is said of it.
#include "ch03_allreduce/test_cases.hpp"
#include "common/comm/world.hpp"

namespace fivecuts::all_reduce {
namespace {

/// What a run of one algorithm puts on this rank's wires, and what the formula says.
void expect_formula(Context& context, const NamedAlgorithm& one, std::int64_t count, DType type,
                    std::int64_t ranks_per_node) {
  if (!one.possible(context.world)) return;
  Workspace work;
  work.ranks_per_node = static_cast<int>(ranks_per_node);
  const Buffer x(context.device, Category::gradient, 1, count, type);
  zero(x);
  const auto so_far = [&] {
    return one.modelled() ? context.traffic.modelled() : context.traffic.measured();
  };
  const Traffic before = so_far();
  one.run(context.world, x, Reduction::sum, work);
  Traffic used = so_far() - before;
  used.sent_inter_node = 0;
  const Case c{context.size(), count, type, ranks_per_node};
  EXPECT_EQ(used, one.traffic(c, context.rank()))
      << one.name << " of " << count << " on " << context.size() << ": sent " << used.sent
      << ", received " << used.received << ", " << used.messages << " messages";
}

RANK_TEST(Wire, BytesAreThoseOfTheFormula) {
  Context& context = test_context();
  for (const NamedAlgorithm& one : all_algorithms()) {
    for (const std::int64_t count : awkward_counts(context.size())) {
      for (const DType type : {DType::f32, DType::i64, DType::bf16}) {
        expect_formula(context, one, count, type, 0);
      }
    }
  }
}

CommonOptions dry(std::int64_t ranks_per_node = 0) {
  CommonOptions options;
  options.device = Device::Kind::meta;
  options.cluster = load_cluster("a100");
  options.cluster->ranks_per_node = ranks_per_node;
  return options;
}

// Dry, on other numbers of ranks than the run's: uneven sizes, and as many as in a large cluster.
ONE_RANK_TEST(Wire, BytesOfLargeWorldsToo) {
  for (const int n : {2, 3, 4, 6, 7, 8, 13, 64}) {
    run_world(n, dry(), [](Context& context) {
      for (const NamedAlgorithm& one : all_algorithms()) {
        for (const std::int64_t count : {5, 1857, 1'000'000'007}) {
          expect_formula(context, one, count, DType::f32, 0);
        }
      }
    });
  }
}

ONE_RANK_TEST(Wire, BytesOfAThousandRanks) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int ranks = 128;  // a sanitizer's threads are large
#else
  constexpr int ranks = 1024;
#endif
  run_world(ranks, dry(32), [](Context& context) {
    for (const char* name : {"gather_broadcast", "ring", "tree", "halving_doubling",
                             "hierarchical"}) {  // a million messages of full_exchange: by hand
      expect_formula(context, algorithm(name), 1'000'000'007, DType::bf16, 32);
    }
  });
}

ONE_RANK_TEST(Wire, HierarchicalOnNodes) {
  for (const auto& [n, per_node] : {std::pair{8, 4}, {8, 2}, {6, 4}, {7, 3}, {12, 5}, {64, 8}}) {
    run_world(n, dry(per_node), [&](Context& context) {
      for (const std::int64_t count : {3, 1857, 1'000'000}) {
        expect_formula(context, algorithm("hierarchical"), count, DType::f32, per_node);
      }
    });
  }
}

// Of D, 2(k-1)/k of D/m go to other nodes from each rank, where the flat ring's last one of a node
// sends up to twice D.
ONE_RANK_TEST(Wire, HierarchicalSparesTheNetwork) {
  const std::int64_t count = 64'000, bytes = 4 * count;
  const auto leaves = [&](Algorithm run) {
    return world_results<std::int64_t>(8, dry(4), [&](Context& context) {
      Workspace work;
      const Buffer x(context.device, Category::gradient, 1, count);
      run(context.world, x, Reduction::sum, work);
      return context.traffic.measured().sent_inter_node;
    });
  };
  EXPECT_EQ(leaves(hierarchical), std::vector<std::int64_t>(8, bytes / 4));
  std::vector<std::int64_t> flat(8);
  flat[0] = flat[4] = bytes * 2 * 7 / 8;
  EXPECT_EQ(leaves(ring), flat);
}

// In each step of the ring a rank sends one message and receives one.
RANK_TEST(Wire, OneSendAndOneReceiveInEachStep) {
  Context& context = test_context();
  const int n = context.size(), r = context.rank();
  const std::int64_t count = 1857;
  const auto bytes_of = [&](int c) { return 4 * part_of(count, n, c % n).count; };
  Workspace work;
  Traffic before;
  const auto expect_step = [&](const Traffic& until, int sent, int received, const char* phase) {
    const Traffic step = until - before;
    EXPECT_EQ(step.messages, 1) << phase;
    EXPECT_EQ(step.sent, bytes_of(sent)) << phase;
    EXPECT_EQ(step.received, bytes_of(received)) << phase;
    before = until;
  };
  const auto traffic_of = [&](const std::function<void(Tensor)>& run) {
    const Buffer x(context.device, Category::gradient, 1, count);
    zero(x);
    const Traffic start = context.traffic.measured();
    run(x);
    return context.traffic.measured() - start;
  };
  for (int step = 1; step < n; ++step) {
    expect_step(
        traffic_of([&](Tensor x) { reduce_scatter(context.world, x, Reduction::sum, work, step); }),
        r + step, r + step + 1, "reduce-scatter");
  }
  before = {};
  for (int step = 1; step < n; ++step) {
    expect_step(traffic_of([&](Tensor x) { all_gather(context.world, x, step); }), r + step - 1,
                r + step, "all-gather");
  }
}

/// Bytes that the algorithm keeps on this rank after two calls; the second one asks for none.
std::int64_t work_memory(Context& context, const NamedAlgorithm& one, std::int64_t count) {
  Workspace work;
  const Buffer x(context.device, Category::gradient, 1, count);
  zero(x);
  const std::int64_t before = context.memory.live();
  one.run(context.world, x, Reduction::sum, work);
  const std::int64_t kept = context.memory.live() - before;
  context.memory.reset_peak();
  const std::int64_t asked = context.device.allocator().system_allocations();
  one.run(context.world, x, Reduction::sum, work);
  EXPECT_EQ(context.device.allocator().system_allocations(), asked) << one.name;
  EXPECT_EQ(context.memory.peak() - before, kept) << one.name;
  EXPECT_EQ(context.memory.live(Category::workspace), kept) << one.name;
  return kept;
}

RANK_TEST(Memory, RingKeepsOneChunk) {
  Context& context = test_context();
  const int n = context.size();
  for (const std::int64_t count : {0, 1, n + 1, 1857, 100'000}) {
    const std::int64_t want = n == 1 ? 0 : 4 * ((count + n - 1) / n);
    EXPECT_EQ(work_memory(context, algorithm("ring"), count), want);
    EXPECT_EQ(work_memory(context, algorithm("hierarchical"), count), want);
  }
}

RANK_TEST(Memory, OfTheOthers) {
  Context& context = test_context();
  const std::int64_t n = context.size(), bytes = 4 * 1856;
  const bool root = context.rank() == 0;
  EXPECT_EQ(work_memory(context, algorithm("gather_broadcast"), 1856), root && n > 1 ? bytes : 0);
  EXPECT_EQ(work_memory(context, algorithm("full_exchange"), 1856), (n - 1) * bytes);
  const bool parent = context.rank() % 2 == 0 && context.rank() + 1 < n;
  EXPECT_EQ(work_memory(context, algorithm("tree"), 1856), parent ? bytes : 0);
  EXPECT_LE(work_memory(context, algorithm("halving_doubling"), 1856), bytes);
  EXPECT_EQ(work_memory(context, algorithm("library"), 1856), 0);
  if (!algorithm("shared").possible(context.world)) return;
  EXPECT_EQ(work_memory(context, algorithm("shared"), 1856), n > 1 ? bytes : 0);
}

}  // namespace
}  // namespace fivecuts::all_reduce
