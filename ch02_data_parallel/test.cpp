
#include <atomic>

#include "ch02_data_parallel/experiments.hpp"
#include "ch02_data_parallel/in_rank_order.hpp"
#include "common/model/golden.hpp"
#include "common/model/random.hpp"
#include "common/support/main.hpp"
#include "common/support/test_main.hpp"

namespace fivecuts::data_parallel {
namespace {

const Digits& digits() {
  static const Digits loaded = load_digits();
  return loaded;
}

Communicator dp() {
  return test_context().world.split("dp", [](int) { return 0; });
}

std::vector<std::int64_t> first_rows(std::int64_t count) {
  auto rows = shuffled(digits().train.count(), 5, 0);
  rows.resize(static_cast<std::size_t>(count));
  return rows;
}

/// Golden's gradient sum of the first `count` rows, one run of numbers.
std::vector<double> golden_gradient(const ModelShape& shape, std::uint64_t seed,
                                    std::span<const std::int64_t> rows) {
  const auto x = golden::matrix(rows_of(digits().train, rows), Samples::pixels);
  const auto labels = labels_of(digits().train, rows);
  const golden::Model model(shape, seed);
  std::vector<double> all;
  for (const auto& layer : model.gradient(x, labels)) {
    const auto flat = golden::flat(layer);
    all.insert(all.end(), flat.begin(), flat.end());
  }
  return all;
}

std::vector<float> gradients_of(const Replica& replica) {
  std::vector<float> all;
  for (const Tensor gradient : replica.gradients) {
    const auto layer = copy_out(gradient);
    all.insert(all.end(), layer.begin(), layer.end());
  }
  return all;
}

const std::vector<NamedRung> summing_rungs = {{"gather_broadcast", gather_broadcast},
                                              {"per_tensor", per_tensor},
                                              {"per_layer", per_layer},
                                              {"copied_bucket", copied_bucket},
                                              {"own_order", own_order}};

// Every rung that sums, on batches that leave ranks with unequal numbers of rows, or none.
RANK_TEST(Rungs, SumToTheGradientOfTheWholeBatch) {
  Context& context = test_context();
  Communicator comm = dp();
  for (const ModelShape& shape :
       {mlp_shape(64, 16, 10, 3), mlp_shape(64, 16, 10, 3, false, true), mlp_shape(64, 1, 10, 1)}) {
    for (const std::int64_t count : {1, 2, 7, 34}) {
      const auto rows = first_rows(count);
      const auto want = golden_gradient(shape, 3, rows);
      for (const auto& [name, rung] : summing_rungs) {
        Replica replica(context.device, shape, 3);
        const auto shards = load_shards(context.device, digits().train, rows, comm, 1);
        add_local_gradients(replica, shards[0]);
        const std::int64_t samples =
            rung(replica, {shards[0].rows(), count}, comm, library_all_reduce);
        const Verdict verdict = compare(comm, name, gradients_of(replica), want, one_pass);
        EXPECT_TRUE(verdict.ok) << verdict.text << " with " << count << " rows";
        EXPECT_EQ(samples, count);
      }
    }
  }
}

// The mean of the ranks' means is another gradient as soon as their counts differ.
RANK_TEST(Rungs, MeanOfMeansIsNotTheGradient) {
  Context& context = test_context();
  Communicator comm = dp();
  const ModelShape shape = mlp_shape(64, 16, 10, 2);
  const auto rows = first_rows(comm.size() + 1);  // rank 0 has two rows, the others one
  const auto shards = load_shards(context.device, digits().train, rows, comm, 1);
  Replica replica(context.device, shape, 3);
  add_local_gradients(replica, shards[0]);
  for (const Tensor g : replica.gradients) scale(g, 1.0f / static_cast<float>(shards[0].rows()));
  per_layer(replica, {1, 1}, comm, library_all_reduce);
  auto want = golden_gradient(shape, 3, rows);
  for (double& value : want) value *= comm.size() / static_cast<double>(rows.size());
  EXPECT_EQ(compare(comm, "mean of means", gradients_of(replica), want, one_pass).ok,
            comm.size() == 1);
}

RANK_TEST(Rungs, NoneLeavesAsManyReplicasAsRanks) {
  Context& context = test_context();
  Communicator comm = dp();
  Replica replica(context.device, mlp_shape(64, 16, 10, 2), 3);
  const auto shards = load_shards(context.device, digits().train, first_rows(20), comm, 1);
  training_step(replica, shards[0], comm, none, library_all_reduce, {});
  EXPECT_EQ(distinct_replicas(replica, comm), comm.size());
}

RANK_TEST(Rungs, OwnOrderDriftsFromThreeRanksOn) {
  Context& context = test_context();
  Communicator comm = dp();
  Replica replica(context.device, mlp_shape(64, 32, 10, 2), 3);
  const auto shards = load_shards(context.device, digits().train, first_rows(60), comm, 1);
  for (int k = 0; k < 5; ++k)
    training_step(replica, shards[0], comm, own_order, library_all_reduce, {});
  if (comm.size() < 3) {
    EXPECT_EQ(distinct_replicas(replica, comm), 1);
  } else {
    EXPECT_GT(distinct_replicas(replica, comm), 1);
  }
}

// What the root and the others send and receive, to the byte.
RANK_TEST(Rungs, GatherBroadcastLoadsTheRoot) {
  Context& context = test_context();
  Communicator comm = dp();
  const ModelShape shape = mlp_shape(64, 16, 10, 3);
  Replica replica(context.device, shape, 3);
  const Traffic before = context.traffic.measured("dp");
  gather_broadcast(replica, {1, 1}, comm, library_all_reduce);
  const Traffic used = context.traffic.measured("dp") - before;
  const std::int64_t bytes = 4 * parameter_count(shape), n = comm.size();
  const std::int64_t want = n == 1 ? 0 : comm.rank() == 0 ? (n - 1) * bytes : bytes;
  EXPECT_EQ(used.sent, want);
  EXPECT_EQ(used.received, want);
  EXPECT_EQ(used.messages, n == 1 ? 0 : (comm.rank() == 0 ? n - 1 : 1) * 3);
}

RANK_TEST(Steps, TakeTheirAllReduceAsAnArgument) {
  Context& context = test_context();
  Communicator comm = dp();
  const auto shards = load_shards(context.device, digits().train, first_rows(20), comm, 2);
  std::atomic<std::int64_t> calls = 0, elements = 0;
  const AllReduce counting = [&](Communicator& c, Tensor t) {
    ++calls;
    elements += t.count();
    c.all_reduce(t);
  };
  Replica replica(context.device, mlp_shape(64, 16, 10, 3), 3);
  const auto expect = [&](std::int64_t want_calls, const char* what) {
    EXPECT_EQ(calls.exchange(0), want_calls) << what;
    EXPECT_EQ(elements.exchange(0), parameter_count(replica.shape)) << what;
  };
  training_step(replica, shards[0], comm, per_tensor, counting, {});
  expect(6, "per tensor");
  training_step(replica, shards[0], comm, per_layer, counting, {});
  expect(3, "per layer");
  overlapped_step(replica, shards[0], comm, counting, {});
  expect(3, "overlapped");
  accumulated_step(replica, shards, comm, per_layer, counting, {});
  expect(3, "accumulated");
}

RANK_TEST(Steps, OverlapChangesNoBit) {
  Context& context = test_context();
  Communicator comm = dp();
  const ModelShape shape = mlp_shape(64, 48, 10, 4);
  Replica plain(context.device, shape, 3), overlapped(context.device, shape, 3);
  for (const std::int64_t count : {33, 1, 20}) {
    const auto shards = load_shards(context.device, digits().train, first_rows(count), comm, 1);
    training_step(plain, shards[0], comm, per_layer, in_rank_order, {});
    overlapped_step(overlapped, shards[0], comm, in_rank_order, {});
    EXPECT_EQ(hash(plain), hash(overlapped));
  }
}

// Micro-batches of unequal and of no rows add up to the whole batch.
RANK_TEST(Steps, AccumulationEqualsTheWholeBatch) {
  Context& context = test_context();
  Communicator comm = dp();
  const ModelShape shape = mlp_shape(64, 16, 10, 3);
  const auto rows = first_rows(31);
  const auto want = golden_gradient(shape, 3, rows);
  for (const std::int64_t micro_batches : {1, 2, 3, 40}) {
    Replica replica(context.device, shape, 3);
    const auto shards = load_shards(context.device, digits().train, rows, comm, micro_batches);
    accumulated_step(replica, shards, comm, per_layer, library_all_reduce, {});
    const Verdict verdict = compare(comm, "accumulated", gradients_of(replica), want, one_pass);
    EXPECT_TRUE(verdict.ok) << verdict.text << " in " << micro_batches << " micro-batches";
  }
}

RANK_TEST(Memory, ModelStateIsSixteenBytesAParameterAndStepsAllocateNothing) {
  Context& context = test_context();
  Communicator comm = dp();
  const ModelShape shape = mlp_shape(64, 100, 10, 3);
  ASSERT_EQ(context.memory.live(), 0);
  {
    Replica replica(context.device, shape, 3);
    const std::int64_t count = parameter_count(shape);
    EXPECT_EQ(context.memory.live(Category::parameter), 4 * count);
    EXPECT_EQ(context.memory.live(Category::gradient), 4 * count);
    EXPECT_EQ(context.memory.live(Category::optimizer), 8 * count);
    const auto shards = load_shards(context.device, digits().train, first_rows(40), comm, 1);
    const std::int64_t at_rest = context.memory.live();
    training_step(replica, shards[0], comm, gather_broadcast, library_all_reduce, {});
    const std::int64_t asked = context.device.allocator().system_allocations();
    for (int k = 0; k < 5; ++k) {
      training_step(replica, shards[0], comm, gather_broadcast, library_all_reduce, {});
      overlapped_step(replica, shards[0], comm, library_all_reduce, {});
    }
    if (context.device.allocator().keeps()) {
      EXPECT_EQ(context.device.allocator().system_allocations(), asked);
    }
    EXPECT_EQ(context.memory.live(), at_rest);
  }
  EXPECT_EQ(context.memory.live(), 0);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__linux__)
// 100 million parameters: what the process really takes is what the ledger says, within a tenth.
RANK_TEST(Memory, RealMemoryFollowsTheLedger) {
  Context& context = test_context();
  if (context.size() > 1 || !context.device.on_host()) return;  // 1.6 GB of the host are enough
  Communicator comm = dp();
  const ModelShape shape(4, LayerShape{5000, 5000, true, true, false});
  const std::int64_t before = resident_bytes();
  Replica replica(context.device, shape, 3);
  Shard shard{Buffer(context.device, Category::activation, 1, 5000),
              Buffer(context.device, Category::activation, 1, 1, DType::i64), 1};
  fill_uniform(shard.x, 4, 0, 1.0f);
  zero(shard.labels);
  for (int k = 0; k < 2; ++k)
    training_step(replica, shard, comm, per_layer, library_all_reduce, {});
  const double ledger = static_cast<double>(context.memory.peak());
  const double real = static_cast<double>(resident_bytes() - before);
  EXPECT_EQ(context.memory.model_state(), 16 * parameter_count(shape));
  EXPECT_NEAR(real / ledger, 1.0, 0.1) << "resident " << real << ", ledger " << ledger;
}
#endif

RANK_TEST(Rungs, TheLadderShowsWhoIsRight) {
  Communicator comm = dp();
  const auto ladder = climb(test_context(), comm, digits(), {}, library_all_reduce);
  for (const RungRow& row : ladder) {
    const bool right = row.name != std::string("none") || comm.size() == 1;
    EXPECT_EQ(row.gradient.ok, right) << row.gradient.text;
    EXPECT_EQ(row.distinct_replicas, right ? 1 : comm.size()) << row.name;
  }
}

RANK_TEST(Training, DifferentStartsAreBroughtTogether) {
  Communicator comm = dp();
  const Reunion reunion = bring_together(test_context(), comm, {});
  EXPECT_EQ(reunion.distinct_before, comm.size());
  EXPECT_EQ(reunion.distinct_after, 1);
  EXPECT_EQ(reunion.changed_ranks, comm.size() - 1);
}

void expect_golden_curve(const TrainingOptions& options, double least_accuracy) {
  Communicator comm = dp();
  const TrainingResult result = train(test_context(), comm, digits(), options, library_all_reduce);
  EXPECT_TRUE(result.early.ok) << result.early.text;
  EXPECT_TRUE(result.loss.ok) << result.loss.text;
  EXPECT_TRUE(result.weights.ok) << result.weights.text;
  EXPECT_EQ(result.steps_with_equal_replicas, result.steps);
  EXPECT_GE(result.epochs.back().accuracy, least_accuracy);
}

RANK_TEST(Training, ReachesNinetyFivePercentOnTheCurveOfGolden) { expect_golden_curve({}, 0.95); }

RANK_TEST(Training, FollowsGoldenWithEveryWayToReduce) {
  TrainingOptions options{.batch = 97, .epochs = 2};  // ragged for every number of ranks but one
  expect_golden_curve(options, 0.8);
  options.micro_batches = 3;
  expect_golden_curve(options, 0.8);
  options.micro_batches = 1;
  options.overlap = true;
  expect_golden_curve(options, 0.8);
  options.overlap = false;
  options.rung = gather_broadcast;
  expect_golden_curve(options, 0.8);
}

// 1,438 rows in batches of 1,437: the second one has a row for the first rank and none for the
// others.
RANK_TEST(Training, RanksWithoutRowsTakePart) {
  expect_golden_curve({.batch = 1437, .epochs = 2}, 0.05);
}

RANK_TEST(Claims, AllOfThisChapterAreShown) {
  Context& context = test_context();
  Communicator comm = dp();
  const TrainingOptions options{.epochs = 1};
  const auto all = load_claims(source_folder() / "docs" / "claims.json");
  ClaimRows rows(all);
  const TrainingResult trained = train(context, comm, digits(), options, library_all_reduce);
  measure_claims(context, comm, digits(), options, library_all_reduce, trained, rows);
  EXPECT_TRUE(rows.all_hold()) << rows.text("en");
  for (const Claim& claim : all) {
    const bool needs_two_ranks = claim.id == "C02.3" || claim.id == "C02.5";
    const bool here = claim.shown_in == "ch02" && !(needs_two_ranks && comm.size() == 1);
    EXPECT_EQ(rows.shows(claim.id), here) << claim.id;
  }
}

}  // namespace
}  // namespace fivecuts::data_parallel
