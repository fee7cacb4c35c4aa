// The numbers: all stages come to the same, and to golden's.
#include "ch07_zero/test_cases.hpp"
#include "common/model/golden.hpp"

namespace fivecuts::zero_redundancy {
namespace {

/// The state after steps on batches that leave ranks with unequal numbers of rows, or none.
std::uint64_t trained(const ModelShape& shape, const Settings& settings,
                      std::int64_t micro_batches = 1) {
  Communicator comm = dp();
  Trainer trainer(test_context().device, comm, shape, 3, settings);
  for (const std::int64_t count : {33, 1, 7}) {
    trainer.step(some_shards(comm, count, micro_batches, settings.precision), {});
    EXPECT_EQ(distinct_replicas(trainer, comm), 1);
  }
  return hash(trainer, comm);
}

RANK_TEST(Stages, EndWithTheSameBits) {
  for (const ModelShape& shape : {uneven(), with_empty_shards(), mlp_shape(64, 32, 10, 3)}) {
    for (const DType precision : {DType::f32, DType::bf16}) {
      for (const double clip : {0.0, 0.02}) {
        const std::uint64_t want = trained(shape, {0, precision, true, clip});
        for_stages({0, precision, true, clip}, [&](Settings settings) {
          EXPECT_EQ(trained(shape, settings), want);
          if (settings.stage < 3) return;
          settings.prefetch = false;
          EXPECT_EQ(trained(shape, settings), want) << "without prefetch";
        });
      }
      EXPECT_NE(trained(shape, {3, precision, true, 0.02}), trained(shape, {3, precision}));
    }
  }
}

// With more micro-batches the sums over them and over the ranks change places from stage 2 on.
RANK_TEST(Stages, AccumulateInTwoOrders) {
  for (const DType precision : {DType::f32, DType::bf16}) {
    const std::uint64_t late = trained(uneven(), {0, precision}, 3);
    EXPECT_EQ(trained(uneven(), {1, precision}, 3), late);
    const std::uint64_t early = trained(uneven(), {2, precision}, 3);
    EXPECT_EQ(trained(uneven(), {3, precision}, 3), early);
    if (test_context().size() > 1) {
      EXPECT_NE(early, late);
    }
  }
}

// ch02's replica, with ch03's ring, is stage 0.
RANK_TEST(Stages, AreDataParallelism) {
  Context& context = test_context();
  Communicator comm = dp();
  all_reduce::Workspace work;
  const AllReduce ring = [&](Communicator& c, Tensor t) {
    all_reduce::ring(c, t, Reduction::sum, work);
  };
  data_parallel::Replica replica(context.device, uneven(), 3);
  Trainer trainer(context.device, comm, uneven(), 3, {.stage = 3});
  for (const std::int64_t count : {33, 20}) {
    const auto shards = some_shards(comm, count);
    const double want =
        data_parallel::training_step(replica, shards[0], comm, data_parallel::per_layer, ring, {});
    EXPECT_EQ(trainer.step(shards, {}), want);
  }
  for (std::size_t k = 0; k < replica.shape.size(); ++k) {
    EXPECT_EQ(whole(trainer, k, Kind::weights, comm), copy_out(replica.parameters[k]));
    EXPECT_EQ(whole(trainer, k, Kind::first_moment, comm), copy_out(replica.optimizer[k].m));
    EXPECT_EQ(whole(trainer, k, Kind::second_moment, comm), copy_out(replica.optimizer[k].v));
  }
}

void expect_golden(const Setting& setting) {
  Communicator comm = dp();
  const TrainingResult result = train(test_context(), comm, digits(), setting);
  EXPECT_TRUE(result.early.ok) << result.early.text;
  EXPECT_TRUE(result.loss.ok) << result.loss.text;
  EXPECT_TRUE(result.weights.ok) << result.weights.text;
  EXPECT_EQ(result.clipped > 0, setting.clip > 0);
  EXPECT_GE(result.epochs.back().accuracy, 0.8);
}

RANK_TEST(Training, FollowsGoldenAtEveryStage) {
  for (const DType precision : {DType::f32, DType::bf16}) {
    for_stages({}, [&](const Settings& settings) {
      for (const std::int64_t k : {1, 3}) {
        Setting setting{.stage = settings.stage};
        setting.training = {.batch = 97, .micro_batches = k, .epochs = 2, .precision = precision};
        expect_golden(setting);
      }
    });
  }
}

RANK_TEST(Training, FollowsGoldenWithClippedGradients) {
  for_stages({}, [&](const Settings& settings) {
    expect_golden({.training = {.epochs = 2}, .stage = settings.stage, .clip = 0.5});
  });
}

// 1,438 rows in batches of 1,437: the second one has a row for the first rank and none for the
// others.
RANK_TEST(Training, RanksWithoutRowsTakePart) {
  Communicator comm = dp();
  for_stages({}, [&](const Settings& settings) {
    const Setting setting{.training = {.batch = 1437, .epochs = 2}, .stage = settings.stage};
    const TrainingResult result = train(test_context(), comm, digits(), setting);
    EXPECT_TRUE(result.weights.ok && result.loss.ok) << result.weights.text;
  });
}

// The norm is that of the mean gradient over the whole model, whatever shards it lies in.
RANK_TEST(Clipping, TakesTheNormOfTheWholeGradient) {
  Communicator comm = dp();
  const auto x = golden::matrix(data_parallel::rows_of(digits().train, some_rows(20)), 64);
  const auto labels = data_parallel::labels_of(digits().train, some_rows(20));
  const double want = golden::Model(uneven(), 3).step(x, labels, {});
  for_stages({}, [&](Settings settings) {
    settings.clip = 100;  // nothing is that long
    Trainer trainer(test_context().device, comm, uneven(), 3, settings);
    trainer.step(some_shards(comm, 20), {});
    EXPECT_NEAR(trainer.gradient_norm() / want, 1, 1e-5);
    settings.clip = 0;
    Trainer free(test_context().device, comm, uneven(), 3, settings);
    free.step(some_shards(comm, 20), {});
    EXPECT_EQ(hash(free, comm), hash(trainer, comm));
  });
}

RANK_TEST(Weights, AreReadBetweenGatherAndReleaseOnly) {
  Communicator comm = dp();
  Trainer trainer(test_context().device, comm, uneven(), 3, {.stage = 3});
  const auto sentence = [&](std::size_t k) -> std::string {
    try {
      trainer.weights(k);
    } catch (const Failure& failure) {
      return failure.what();
    }
    return "";
  };
  const Buffer want(test_context().device, Category::workspace, 1, 368);
  initialise(uneven()[1], want, 3, 1);
  const std::string before = sentence(1);
  trainer.gather(1);
  const std::string between = sentence(1), other = sentence(0);
  const std::uint64_t bits = fivecuts::hash(trainer.weights(1));
  trainer.release(1);
  const std::string after = sentence(1);
  EXPECT_EQ(bits, fivecuts::hash(want));
  EXPECT_EQ(between, "");
  EXPECT_NE(before.find("the weights of layer 1 are not whole here: at stage 3"),
            std::string::npos);
  EXPECT_NE(before.find("call gather(1) on every rank before weights(1)"), std::string::npos);
  EXPECT_EQ(after, before);
  EXPECT_NE(other.find("layer 0"), std::string::npos);
  for (const int stage : {0, 1, 2}) {
    const Trainer kept(test_context().device, comm, uneven(), 3, {.stage = stage});
    EXPECT_EQ(fivecuts::hash(kept.weights(1)), bits);
  }
}

}  // namespace
}  // namespace fivecuts::zero_redundancy
