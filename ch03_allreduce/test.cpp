// Every algorithm gives the exact sum, whatever the number of ranks, size and type.
#include "ch03_allreduce/test_cases.hpp"
#include "common/comm/world.hpp"

namespace fivecuts::all_reduce {
namespace {

/// Each such test runs for each algorithm and type.
class Exact : public testing::TestWithParam<std::tuple<std::size_t, DType>> {
 public:
  static Tried tried() { return all_tried()[std::get<0>(GetParam())]; }
  static const NamedAlgorithm& algorithm() { return *tried().algorithm; }
  static Workspace workspace() { return tried().workspace(); }
  static DType type() { return std::get<1>(GetParam()); }
};
std::string name_of_case(const testing::TestParamInfo<std::tuple<std::size_t, DType>>& info) {
  const auto [index, type] = info.param;
  return fmt::format("{}_{}", all_tried()[index].name(), name_of(type));
}
INSTANTIATE_TEST_SUITE_P(, Exact,
                         testing::Combine(testing::Range<std::size_t>(0, all_tried().size()),
                                          testing::Values(DType::f32, DType::i64, DType::bf16)),
                         name_of_case);

/// On every rank, unless the device keeps its ranks from running the algorithm.
void where_possible(const std::function<void()>& body) {
  on_every_rank([&] {
    if (Exact::algorithm().possible(test_context().world)) body();
  });
}

/// Runs the algorithm on each rank of `comm`, whose ranks are `members` of the world, with their
/// numbers.
void expect_sum(Context& context, Communicator& comm, const std::vector<int>& members,
                std::int64_t count, Workspace& work) {
  const DType type = Exact::type();
  const Buffer x = of_rank(context, type, count, members[static_cast<std::size_t>(comm.rank())]);
  Exact::algorithm().run(comm, x, Reduction::sum, work);
  EXPECT_TRUE(holds(x, [&](std::int64_t i) { return sum_of(members, i, type); }))
      << count << " elements on " << comm.size() << " ranks";
}

void all_sizes() {
  Context& context = test_context();
  Workspace work = Exact::workspace();  // one for all sizes: short ones follow long ones
  for (const std::int64_t count : awkward_counts(context.size())) {
    expect_sum(context, context.world, all_ranks(context.size()), count, work);
  }
  expect_sum(context, context.world, all_ranks(context.size()), 1'000'000, work);
  expect_sum(context, context.world, all_ranks(context.size()), 3, work);
}
TEST_P(Exact, SumOfAnySize) { where_possible(all_sizes); }

// Where MPI and the threads stop to keep a message, some sizes deadlock that others do not.
void eager_limits() {
  Context& context = test_context();
  Workspace work = Exact::workspace();
  const std::int64_t n = context.size(), element = size_of(Exact::type());
  for (const std::int64_t bytes : {1024, 4000, 4096, 4104, 12288, 32768, 65536, 65544, 131080}) {
    for (const std::int64_t chunks : {std::int64_t{1}, n}) {
      expect_sum(context, context.world, all_ranks(context.size()), chunks * bytes / element, work);
    }
  }
}
TEST_P(Exact, AroundTheEagerLimits) { where_possible(eager_limits); }

void maxima() {
  Context& context = test_context();
  Workspace work = Exact::workspace();
  const DType type = Exact::type();
  const int n = context.size();
  // The largest stands on another rank for each element; all are negative.
  const auto number = [&](int rank, std::int64_t i) { return (rank + i) % n - 2 * n - i % 3 * n; };
  for (const std::int64_t count : awkward_counts(n)) {
    const Buffer x(context.device, Category::gradient, 1, count, type);
    fill(x, [&](std::int64_t i) { return number(context.rank(), i); });
    Exact::algorithm().run(context.world, x, Reduction::max, work);
    EXPECT_TRUE(holds(x, [&](std::int64_t i) { return number(0, i) - i % n + n - 1; }))
        << count << " elements";
  }
}
TEST_P(Exact, Maximum) { where_possible(maxima); }

void means() {
  Context& context = test_context();
  Workspace work = Exact::workspace();
  const DType type = Exact::type();
  const int n = context.size();
  if (type == DType::i64) {
    const Buffer x = of_rank(context, type, 5, context.rank());
    EXPECT_THROW(average(Exact::algorithm().run, context.world, x, work), Failure);
    return;
  }
  for (const std::int64_t count : awkward_counts(n)) {
    const Buffer x = of_rank(context, type, count, context.rank());
    average(Exact::algorithm().run, context.world, x, work);
    EXPECT_TRUE(holds(x,
                      [&](std::int64_t i) {
                        const float mean = static_cast<float>(sum_of(all_ranks(n), i, type)) *
                                           (1.0f / static_cast<float>(n));
                        return type == DType::bf16 ? static_cast<float>(Bf16(mean)) : mean;
                      }))
        << count << " elements";
  }
}
TEST_P(Exact, Average) { where_possible(means); }

// A piece of a longer tensor: what lies around it stays as it is.
void in_place() {
  Context& context = test_context();
  Workspace work = Exact::workspace();
  const DType type = Exact::type();
  const std::int64_t count = 1857, before = 5, after = 7;
  const Buffer whole = of_rank(context, type, before + count + after, context.rank());
  Exact::algorithm().run(context.world, whole.tensor().part(before, count), Reduction::sum, work);
  EXPECT_TRUE(holds(whole, [&](std::int64_t i) {
    const bool inside = i >= before && i < before + count;
    return inside ? sum_of(all_ranks(context.size()), i, type) : value(context.rank(), i, type);
  }));
}
TEST_P(Exact, InPlaceAndNowhereElse) { where_possible(in_place); }

// Odd and even ranks, each on their own and at the same time.
void groups() {
  Context& context = test_context();
  Workspace work = Exact::workspace();
  Communicator group = context.world.split("parity", [](int r) { return r % 2; });
  std::vector<int> members;
  for (int r = context.rank() % 2; r < context.size(); r += 2) members.push_back(r);
  for (const std::int64_t count : {1, 1000, 1857, 20'000}) {
    expect_sum(context, group, members, count, work);
  }
}
TEST_P(Exact, OnSubsetsOfTheWorld) { where_possible(groups); }

// Two at once on the same rank: one under async(), one beside it.
void two_at_once() {
  Context& context = test_context();
  const DType type = Exact::type();
  Communicator half = context.world.split("half", [](int r) { return r / 2; });
  std::vector<int> members = {context.rank() / 2 * 2};
  if (half.size() == 2) members.push_back(members[0] + 1);
  Workspace works[] = {Exact::workspace(), Exact::workspace()};
  for (int k = 0; k < 5; ++k) {
    const Buffer beside = of_rank(context, type, 9000 + k, context.rank());
    Pending pending = context.world.async([&](Communicator& lane) {
      Exact::algorithm().run(lane, beside, Reduction::sum, works[0]);
    });
    expect_sum(context, half, members, 8000 + k, works[1]);
    pending.wait();
    EXPECT_TRUE(
        holds(beside, [&](std::int64_t i) { return sum_of(all_ranks(context.size()), i, type); }));
  }
}
TEST_P(Exact, TwoAtOnce) { where_possible(two_at_once); }

// Nodes of any size, some not full; those of one rank and of all.
RANK_TEST(Hierarchical, OnNodesOfAnySize) {
  Context& context = test_context();
  for (int per_node = 1; per_node <= context.size() + 1; ++per_node) {
    Workspace work;
    work.ranks_per_node = per_node;
    for (const std::int64_t count : awkward_counts(context.size())) {
      const Buffer x = of_rank(context, DType::f32, count, context.rank());
      hierarchical(context.world, x, Reduction::sum, work);
      EXPECT_TRUE(holds(
          x, [&](std::int64_t i) { return sum_of(all_ranks(context.size()), i, DType::f32); }))
          << per_node << " ranks a node";
    }
  }
}

// Both phases inside and both across have something to do, in every type.
ONE_RANK_TEST(Hierarchical, OnTwoNodesOfThree) {
  run_world(6, {}, [](Context& context) {
    for (const DType type : {DType::f32, DType::i64, DType::bf16}) {
      Workspace work;
      work.ranks_per_node = 3;
      for (const std::int64_t count : awkward_counts(6)) {
        const Buffer sum = of_rank(context, type, count, context.rank()),
                     most = of_rank(context, type, count, context.rank());
        hierarchical(context.world, sum, Reduction::sum, work);
        hierarchical(context.world, most, Reduction::max, work);
        EXPECT_TRUE(holds(sum, [&](std::int64_t i) { return sum_of(all_ranks(6), i, type); }));
        EXPECT_TRUE(holds(most, [&](std::int64_t i) { return value(5, i, type); }));
      }
    }
  });
}

RANK_TEST(Phases, ChunkRankIsWholeAfterReduceScatterAndAllAreAfterAllGather) {
  Context& context = test_context();
  const int n = context.size(), r = context.rank();
  Workspace work;
  for (const std::int64_t count : awkward_counts(n)) {
    const Buffer x = of_rank(context, DType::i64, count, r);
    reduce_scatter(context.world, x, Reduction::sum, work);
    const auto [first, mine] = part_of(count, n, r);
    const Tensor chunk = x.tensor().part(first, mine);
    const auto sum = [&, at = first](std::int64_t i) {
      return sum_of(all_ranks(n), at + i, DType::i64);
    };
    EXPECT_TRUE(holds(chunk, sum)) << count << " elements";
    // What all_gather brings is the owner's chunk, and nothing that lay around before.
    fill(x, [&, at = first, end = first + mine](std::int64_t i) {
      return i >= at && i < end ? i : -1;
    });
    all_gather(context.world, x);
    EXPECT_TRUE(holds(x, [](std::int64_t i) { return i; })) << count << " elements";
  }
}

// As ch02 takes it: called for tensors of any size, on the caller's lane or on that of async().
RANK_TEST(AsAnArgument, KeepsItsWorkspace) {
  Context& context = test_context();
  const AllReduce sum = with_workspace(ring);
  for (const std::int64_t count : {1857, 3, 1858}) {
    const Buffer x = of_rank(context, DType::f32, count, context.rank());
    context.world.async([&](Communicator& lane) { sum(lane, x); }).wait();
    EXPECT_TRUE(
        holds(x, [&](std::int64_t i) { return sum_of(all_ranks(context.size()), i, DType::f32); }));
  }
  const int n = context.size();
  const std::int64_t chunk = n == 1 ? 0 : (1858 + n - 1) / n;
  EXPECT_EQ(context.memory.live(Category::workspace), 4 * chunk);
}

// NCCL promises no order of its sums, so its library is asked for the same bits on all ranks only.
RANK_TEST(Bits, AreTheSameOnAllRanksAndInEveryRun) {
  Context& context = test_context();
  for (const Tried& tried : all_tried()) {
    const NamedAlgorithm& one = *tried.algorithm;
    if (!one.possible(context.world)) continue;
    std::uint64_t before = 0;
    for (int k = 0; k < 2; ++k) {
      Workspace work = tried.workspace();
      const Buffer x(context.device, Category::gradient, 1, 1857);
      fill(x,
           [&](std::int64_t i) { return 1.0 / static_cast<double>(3 + i * 7 + context.rank()); });
      one.run(context.world, x, Reduction::sum, work);
      const auto hashes = context.world.gather(hash(x));
      for (const std::uint64_t h : hashes) EXPECT_EQ(h, hashes[0]) << tried.name();
      if (k == 1 && !(context.options.nccl && one.name == std::string("library"))) {
        EXPECT_EQ(hashes[0], before) << tried.name();
      }
      before = hashes[0];
    }
  }
}

}  // namespace
}  // namespace fivecuts::all_reduce
