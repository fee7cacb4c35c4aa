// The chapter in bf16: as right as its 8 bits allow, in 16 bytes a parameter.
#include "ch02_data_parallel/experiments.hpp"
#include "ch02_data_parallel/in_rank_order.hpp"
#include "common/model/golden.hpp"
#include "common/support/main.hpp"
#include "common/support/test_main.hpp"

namespace fivecuts::data_parallel {
namespace {

const Digits& digits() {
  static const Digits loaded = load_digits();
  return loaded;
}

/// What the tests of a few steps start from: a replica in bf16, and this rank's part of 34 rows.
struct Start {
  Start()
      : replica(context.device, mlp_shape(64, 48, 10, 3), 3, DType::bf16),
        shard(std::move(
            load_shards(context.device, digits().train, rows, comm, 1, DType::bf16).front())) {}
  double step(Rung rung, const AllReduce& all_reduce = library_all_reduce) {
    return training_step(replica, shard, comm, rung, all_reduce, {});
  }

  Context& context = test_context();
  Communicator comm = context.world.split("dp", [](int) { return 0; });
  const std::vector<std::int64_t> rows = batches_of(digits().train.count(), 34, 5, 0).front();
  Replica replica;
  Shard shard;
};

RANK_TEST(Bf16, TakesTwoAndTwoAndTwelveBytesAParameterAndStepsAllocateNothing) {
  Start s;
  const std::int64_t count = parameter_count(s.replica.shape);
  const MemoryLedger& memory = s.context.memory;
  EXPECT_EQ(memory.live(Category::parameter), 2 * count);
  EXPECT_EQ(memory.live(Category::gradient), 2 * count);
  EXPECT_EQ(memory.live(Category::optimizer), 12 * count);
  s.step(gather_broadcast);
  const std::int64_t asked = s.context.device.allocator().system_allocations();
  for (int k = 0; k < 5; ++k) s.step(gather_broadcast);
  if (s.context.device.allocator().keeps()) {
    EXPECT_EQ(s.context.device.allocator().system_allocations(), asked);
  }
  EXPECT_EQ(memory.model_state(), 16 * count);
}

// Messages carry 2 bytes an element.
RANK_TEST(Bf16, HalvesTheBytesOnTheWire) {
  Start s;
  const Traffic before = s.context.traffic.measured("dp");
  gather_broadcast(s.replica, {1, 1}, s.comm, library_all_reduce);
  const Traffic used = s.context.traffic.measured("dp") - before;
  const std::int64_t bytes = 2 * parameter_count(s.replica.shape), n = s.comm.size();
  EXPECT_EQ(used.sent, n == 1 ? 0 : s.comm.rank() == 0 ? (n - 1) * bytes : bytes);
}

// The first weights are golden's in f32, and theirs rounded in bf16; so they stay.
RANK_TEST(Bf16, ParametersAreTheMasterWeightsRounded) {
  Start s;
  const golden::Model model(s.replica.shape, 3);
  for (int k = 0; k < 4; ++k) {
    for (std::size_t layer = 0; layer < s.replica.shape.size(); ++layer) {
      const auto master = copy_out(s.replica.optimizer[layer].master);
      const auto parameters = copy_out(s.replica.parameters[layer]);
      const auto first = golden::flat(model.layers()[layer]);
      for (std::size_t i = 0; i < master.size(); ++i) {
        EXPECT_EQ(parameters[i], static_cast<float>(Bf16(master[i])));
        if (k == 0) {
          EXPECT_EQ(static_cast<double>(master[i]), first[i]);
        }
      }
    }
    s.step(per_layer);
  }
}

// Each rung ends with golden's gradient; none of them would pass for it with the sums left out.
RANK_TEST(Bf16, TheLadderShowsWhoIsRight) {
  Communicator comm = test_context().world.split("dp", [](int) { return 0; });
  for (const std::int64_t batch : {100, 7}) {
    const TrainingOptions options{.batch = batch, .precision = DType::bf16};
    for (const RungRow& row : climb(test_context(), comm, digits(), options, library_all_reduce)) {
      const bool right = row.name != std::string("none") || comm.size() == 1;
      EXPECT_EQ(row.gradient.ok, right) << row.gradient.text << ", batch " << batch;
      EXPECT_EQ(row.distinct_replicas, right ? 1 : comm.size()) << row.name;
    }
  }
}

RANK_TEST(Bf16, OverlapChangesNoBit) {
  Start plain, overlapped;
  for (int k = 0; k < 3; ++k) {
    plain.step(per_layer, in_rank_order);
    overlapped_step(overlapped.replica, overlapped.shard, overlapped.comm, in_rank_order, {});
    EXPECT_EQ(hash(plain.replica), hash(overlapped.replica));
  }
}

// Weights in f32 that differ are different replicas, even where they round to the same bf16.
RANK_TEST(Bf16, DifferentStartsAreBroughtTogether) {
  Communicator comm = test_context().world.split("dp", [](int) { return 0; });
  const Reunion reunion = bring_together(test_context(), comm, {.precision = DType::bf16});
  EXPECT_EQ(reunion.distinct_before, comm.size());
  EXPECT_EQ(reunion.distinct_after, 1);
  EXPECT_EQ(reunion.changed_ranks, comm.size() - 1);
  Start s;
  const std::uint64_t before = hash(s.replica);
  scale(s.replica.optimizer[0].master, 1.0f + 1e-6f);
  EXPECT_NE(hash(s.replica), before);
}

TrainingResult trained(const TrainingOptions& options) {
  Communicator comm = test_context().world.split("dp", [](int) { return 0; });
  return train(test_context(), comm, digits(), options, library_all_reduce);
}

RANK_TEST(Bf16, ReachesTheAccuracyOfFp32) {
  TrainingOptions options;
  const double fp32 = trained(options).epochs.back().accuracy;
  options.precision = DType::bf16;
  const TrainingResult result = trained(options);
  EXPECT_NEAR(result.epochs.back().accuracy, fp32, 0.01);
  EXPECT_GE(result.epochs.back().accuracy, 0.95);
  EXPECT_TRUE(result.early.ok) << result.early.text;
  EXPECT_TRUE(result.loss.ok) << result.loss.text;
  EXPECT_TRUE(result.weights.ok) << result.weights.text;
  EXPECT_EQ(result.steps_with_equal_replicas, result.steps);
}

RANK_TEST(Bf16, FollowsGoldenWithEveryWayToReduce) {
  TrainingOptions options{.batch = 97, .epochs = 2, .precision = DType::bf16};
  const auto expect_golden = [&](const char* how) {
    const TrainingResult result = trained(options);
    EXPECT_TRUE(result.early.ok && result.loss.ok && result.weights.ok)
        << how << ": " << result.weights.text << ", " << result.loss.text;
    EXPECT_EQ(result.steps_with_equal_replicas, result.steps);
  };
  options.micro_batches = 3;
  expect_golden("three micro-batches");
  options.micro_batches = 1;
  options.overlap = true;
  expect_golden("overlapped");
  options.overlap = false;
  options.rung = gather_broadcast;
  expect_golden("through the root");
}

// Ten times as many move with master weights; what stands still then has no gradient, like the
// weights of pixels that are white in every row of the batch, or has not come to its next number.
RANK_TEST(Bf16, WithoutMasterWeightsNearlyNothingMoves) {
  Communicator comm = test_context().world.split("dp", [](int) { return 0; });
  const Standstill still = stand_still(test_context(), comm, digits(), {}, library_all_reduce);
  const std::int64_t count = parameter_count(model_of({}));
  EXPECT_GE(still.without, count * 9 / 10);
  EXPECT_LE(still.with_master, count / 5);
  EXPECT_GE(count - still.with_master, 10 * (count - still.without));
}

RANK_TEST(Bf16, ClaimsHold) {
  Context& context = test_context();
  Communicator comm = context.world.split("dp", [](int) { return 0; });
  const TrainingOptions options{.epochs = 1, .precision = DType::bf16};
  ClaimRows rows(load_claims(source_folder() / "docs" / "claims.json"));
  const TrainingResult result = trained(options);
  measure_claims(context, comm, digits(), options, library_all_reduce, result, rows);
  EXPECT_TRUE(rows.all_hold()) << rows.text("en");
}

}  // namespace
}  // namespace fivecuts::data_parallel
