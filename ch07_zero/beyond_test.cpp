// beyond/: other ways to the same weights.
#include "ch07_zero/beyond/beyond.hpp"
#include "ch07_zero/test_cases.hpp"

namespace fivecuts::zero_redundancy {
namespace {

std::uint64_t trained(const Make& make, const ModelShape& shape, const Settings& settings,
                      std::int64_t micro_batches = 1) {
  Communicator comm = dp();
  const auto trainer = make(test_context().device, comm, shape, 3, settings);
  for (const std::int64_t count : {33, 1, 7}) {
    trainer->step(some_shards(comm, count, micro_batches, settings.precision), {});
  }
  const auto hashes = comm.gather(hash(*trainer, trainer->comm()));
  for (const std::uint64_t other : hashes) EXPECT_EQ(other, hashes.front());
  return hashes.front();
}

Make groups_of(int group) {
  return [group](Device& device, const Communicator& comm, const ModelShape& shape,
                 std::uint64_t seed, const Settings& settings) {
    return std::make_unique<HybridSharding>(device, comm, shape, seed, settings, group);
  };
}

/// Its last layer has a GELU too: its output is recomputed, while its place holds the gradient.
ModelShape gelu_to_the_end() { return {{64, 22}, {22, 16}, {16, 21}}; }

RANK_TEST(Beyond, EndsWithTheSameBits) {
  const int n = test_context().size();
  for (const ModelShape& shape : {uneven(), with_empty_shards(), gelu_to_the_end()}) {
    for (const DType precision : {DType::f32, DType::bf16}) {
      const std::uint64_t want = trained(make_trainer<>, shape, {0, precision});
      EXPECT_EQ(trained(make_trainer<AllReduceAndGather>, shape, {1, precision}), want);
      for_stages({.precision = precision}, [&](const Settings& settings) {
        EXPECT_EQ(trained(make_trainer<Recomputation>, shape, settings), want);
      });
      for (const bool prefetch : {true, false}) {
        const Settings settings{3, precision, prefetch};
        EXPECT_EQ(trained(make_trainer<Recomputation>, shape, settings), want);
        EXPECT_EQ(trained(make_trainer<KeptParameters>, shape, settings), want);
        EXPECT_EQ(trained(make_trainer<OneOwner>, shape, settings), want);
        EXPECT_EQ(trained(groups_of(1), shape, settings), want) << "replicas";
        EXPECT_EQ(trained(groups_of(n), shape, settings), want) << "one group";
      }
    }
  }
}

RANK_TEST(Beyond, AccumulatesAsItsStage) {
  const std::uint64_t late = trained(make_trainer<>, uneven(), {.stage = 0}, 3);
  const std::uint64_t early = trained(make_trainer<>, uneven(), {.stage = 3}, 3);
  EXPECT_EQ(trained(make_trainer<AllReduceAndGather>, uneven(), {.stage = 1}, 3), late);
  EXPECT_EQ(trained(make_trainer<Recomputation>, uneven(), {.stage = 3}, 3), early);
  EXPECT_EQ(trained(make_trainer<KeptParameters>, uneven(), {.stage = 3}, 3), early);
  EXPECT_EQ(trained(make_trainer<OneOwner>, uneven(), {.stage = 3}, 3), early);
  EXPECT_EQ(trained(groups_of(test_context().size()), uneven(), {.stage = 3}, 3), early);
  EXPECT_EQ(trained(groups_of(1), uneven(), {.stage = 2}, 3), late) << "summed once, at the end";
}

// Sums inside groups and then across have another order; all ranks still come to one state.
RANK_TEST(Hybrid, TrainsWithinTolerance) {
  Communicator comm = dp();
  for (int group = 1; group <= comm.size(); ++group) {
    if (comm.size() % group != 0) continue;
    for (const int stage : {2, 3}) {
      for (const double clip : {0.0, 0.02}) {
        const Setting setting{.training = {.epochs = 2}, .stage = stage, .clip = clip};
        const Outcome plain = train_alone(test_context(), comm, digits(), setting);
        const Outcome hybrid =
            train_alone(test_context(), comm, digits(), setting, groups_of(group));
        const std::vector<double> want(plain.weights.begin(), plain.weights.end());
        const Verdict close = compare(comm, "weights", hybrid.weights, want, trained_weights);
        EXPECT_TRUE(close.ok) << close.text;
        const auto states = comm.gather(hybrid.hash);
        for (const std::uint64_t state : states) EXPECT_EQ(state, states.front());
      }
    }
  }
}

RANK_TEST(Hybrid, RefusesGroupsThatDoNotDivide) {
  Communicator comm = dp();
  const int n = comm.size();
  for (const int group : {0, n + 1}) {
    std::string sentence;
    try {
      const HybridSharding trainer(test_context().device, comm, uneven(), 3, {.stage = 3}, group);
    } catch (const Failure& failure) {
      sentence = failure.what();
    }
    EXPECT_NE(sentence.find(fmt::format("{} ranks are not made up of groups of {}", n, group)),
              std::string::npos)
        << sentence;
  }
}

// Parameters that a forward pass alone has gathered are there still; the next step is the same.
RANK_TEST(Kept, ParametersStayUntilABackwardPass) {
  Communicator comm = dp();
  const MemoryLedger& memory = test_context().memory;
  const auto whole_bytes = [] { return 4 * parameter_count(uneven()); };
  KeptParameters kept(test_context().device, comm, uneven(), 3, {.stage = 3});
  Trainer plain(test_context().device, comm, uneven(), 3, {.stage = 3});
  const std::int64_t at_rest = memory.live(Category::parameter);
  {
    const auto shards = some_shards(comm, 20);
    std::vector<Saved> saved;
    kept.forward(shards[0], saved);
    EXPECT_EQ(memory.live(Category::parameter), at_rest + whole_bytes());
  }
  kept.step(some_shards(comm, 33), {});
  plain.step(some_shards(comm, 33), {});
  EXPECT_EQ(memory.live(Category::parameter), at_rest);
  EXPECT_EQ(hash(kept, comm), hash(plain, comm));
}

RANK_TEST(Gradients, InF32AreTheSameAtEveryStage) {
  const Settings halves{0, DType::bf16}, whole{0, DType::bf16, true, 0, true};
  const std::uint64_t want = trained(make_trainer<>, uneven(), whole);
  for_stages(whole, [&](const Settings& settings) {
    EXPECT_EQ(trained(make_trainer<>, uneven(), settings), want);
  });
  EXPECT_NE(trained(make_trainer<>, uneven(), halves), want);
}

// Integers that say where they come from; parts of one size, the last ones shorter or empty.
RANK_TEST(EqualParts, SumAndGatherWhatNDoesNotDivide) {
  Context& context = test_context();
  Communicator comm = dp();
  const std::int64_t n = comm.size(), r = comm.rank();
  for (const std::int64_t count :
       {std::int64_t{0}, std::int64_t{1}, n - 1, n, n + 1, std::int64_t{17}, std::int64_t{1857}}) {
    const std::int64_t each = (count + n - 1) / n;
    const std::int64_t before = context.memory.live(Category::workspace);
    EqualParts parts(context.device, comm, count, DType::f32);
    EXPECT_EQ(parts.padding(), each * n - count);
    EXPECT_EQ(context.memory.live(Category::workspace) - before, 4 * each * (n + 1));
    std::vector<float> mine, want;
    for (std::int64_t i = 0; i < count; ++i) {
      mine.push_back(static_cast<float>(i + 10'000 * r));
      want.push_back(static_cast<float>(n * i + 10'000 * (n * (n - 1) / 2)));
    }
    const Buffer bucket(context.device, Category::gradient, 1, count);
    copy_in(mine, bucket);
    const std::vector<float> part = copy_out(parts.reduce_scatter(bucket));
    const std::int64_t first = std::min(r * each, count), last = std::min(first + each, count);
    EXPECT_EQ(part, std::vector<float>(want.begin() + first, want.begin() + last));
    zero(bucket);
    parts.all_gather(bucket);
    EXPECT_EQ(copy_out(bucket), want);
  }
}

}  // namespace
}  // namespace fivecuts::zero_redundancy
