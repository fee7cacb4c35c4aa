// What is special about memory that all ranks reach. That `shared` gives the exact sum is shown in
// test.cpp.
#include "ch03_allreduce/test_cases.hpp"
#include "common/comm/world.hpp"

namespace fivecuts::all_reduce {
namespace {

CommonOptions dry_on(std::int64_t ranks_per_node) {
  CommonOptions options;
  options.device = Device::Kind::meta;
  options.cluster = load_cluster("a100");
  options.cluster->ranks_per_node = ranks_per_node;
  return options;
}

// A tensor that lies there already: no copy, no work memory, and parts of it at any place.
RANK_TEST(Shared, WhereItLies) {
  Context& context = test_context();
  if (!SharedBuffer::possible(context.world)) return;
  const int n = context.size();
  for (const DType type : {DType::f32, DType::i64, DType::bf16}) {
    SharedBuffer memory(context.world, Category::gradient, 1, 3 + 1857 + 5, type);
    fill(memory, [&](std::int64_t i) { return value(context.rank(), i, type); });
    const double copied = context.device.work().bytes();
    const std::int64_t booked = context.memory.live();
    const std::int64_t first = 3, count = 1857;
    shared_in(memory, memory.tensor().part(first, count), Reduction::sum);
    EXPECT_EQ(context.memory.live(), booked);
    EXPECT_EQ(context.device.work().bytes() - copied,
              n == 1 ? 0
                     : static_cast<double>(2 * n * part_of(count, n, context.rank()).count *
                                           size_of(type)));
    context.world.barrier();
    EXPECT_TRUE(holds(memory, [&](std::int64_t i) {
      const bool inside = i >= first && i < first + count;
      return inside ? sum_of(all_ranks(n), i, type) : value(context.rank(), i, type);
    }));
  }
}

// Several at once, as a model has a gradient a layer; over and over, so that a rank which is late
// would meet the next round's numbers.
RANK_TEST(Shared, SeveralAtOnceAndManyTimes) {
  Context& context = test_context();
  if (!SharedBuffer::possible(context.world)) return;
  const int n = context.size();
  const auto memories = std::make_shared<std::vector<SharedBuffer>>();
  std::vector<Buffer> gradients;
  for (const std::int64_t count : {1857, 2, 64'000}) {
    gradients.push_back(
        memories->emplace_back(context.world, Category::gradient, 1, count, DType::i64).take());
  }
  const AllReduce sum = shared_in(memories);
  for (int round = 0; round < 50; ++round) {
    for (const Tensor gradient : gradients) {
      fill(gradient, [&](std::int64_t i) { return round + value(context.rank(), i, DType::i64); });
      sum(context.world, gradient);
      EXPECT_TRUE(holds(gradient, [&](std::int64_t i) {
        return n * round + sum_of(all_ranks(n), i, DType::i64);
      }));
    }
  }
  EXPECT_EQ(context.memory.live(Category::gradient), 8 * (1857 + 2 + 64'000));
  const Buffer elsewhere(context.device, Category::gradient, 1, 5, DType::i64);
  EXPECT_THROW(sum(context.world, elsewhere), Failure);
}

// Without guard and clock the barrier alone keeps the ranks apart.
ONE_RANK_TEST(Shared, WithoutGuardAndClock) {
  CommonOptions options;
  options.guard = false;
  for (const int n : {1, 2, 3, 5, 8}) {  // more than there are cores, too
    run_world(n, options, [&](Context& context) {
      Workspace work;
      for (int round = 0; round < 100; ++round) {
        const Buffer x(context.device, Category::gradient, 1, 100 + round, DType::i64);
        fill(x, [&](std::int64_t i) { return round * i + context.rank(); });
        shared(context.world, x, Reduction::sum, work);
        EXPECT_TRUE(holds(x, [&](std::int64_t i) { return n * round * i + n * (n - 1) / 2; }));
      }
    });
  }
}

// Two nodes have no memory in common: a sentence on every rank, before anything is booked.
ONE_RANK_TEST(Shared, NotAcrossNodes) {
  run_world(4, dry_on(2), [](Context& context) {
    EXPECT_FALSE(algorithm("shared").possible(context.world));
    Workspace work;
    const Buffer x(context.device, Category::gradient, 1, 5);
    EXPECT_THROW(shared(context.world, x, Reduction::sum, work), Failure);
    EXPECT_EQ(context.memory.live(Category::workspace), 0);
    Communicator node = context.world.split("node", [](int r) { return r / 2; });
    EXPECT_TRUE(algorithm("shared").possible(node));
    shared(node, x, Reduction::sum, work);
  });
}

// Two meetings, and what is read and written over the link: 2 (alpha + (N-1)/N d), and the adding.
ONE_RANK_TEST(Shared, OnTheClockInPlace) {
  CommonOptions options = dry_on(0);
  options.cluster->intra_node = {100, 4};  // one element a second
  options.cluster->memory_bandwidth = options.cluster->peak_f32 = 1e30;
  options.cluster->overhead = 0;
  run_world(4, options, [](Context& context) {
    SharedBuffer memory(context.world, Category::gradient, 1, 8);
    shared_in(memory, memory, Reduction::sum);
    EXPECT_DOUBLE_EQ(context.clock.now(), 2 * 100 + 12);
  });
}

// The guard compares what the ranks have come for.
ONE_RANK_TEST(Shared, AnotherPlaceIsNoticed) {
  CommonOptions options;
  const auto elsewhere = [](Context& context) {
    SharedBuffer memory(context.world, Category::gradient, 1, 8);
    shared_in(memory, memory.tensor().part(context.rank(), 3), Reduction::max);
  };
  try {
    run_world(2, options, elsewhere);
    ADD_FAILURE() << "nobody noticed";
  } catch (const GuardError& error) {
    EXPECT_NE(std::string(error.what()).find("shared memory of 3 x f32 at byte 4 (max)"),
              std::string::npos)
        << error.what();
  }
}

// One rank ends with an exception while the others poll.
ONE_RANK_TEST(Shared, AFailureElsewhereEndsTheWaiting) {
  CommonOptions options;
  options.guard = false;
  EXPECT_THROW(run_world(3, options,
                         [](Context& context) {
                           SharedBuffer memory(context.world, Category::gradient, 1, 8);
                           if (context.rank() == 1) throw std::runtime_error("on purpose");
                           shared_in(memory, memory, Reduction::sum);
                         }),
               std::runtime_error);
}

}  // namespace
}  // namespace fivecuts::all_reduce
