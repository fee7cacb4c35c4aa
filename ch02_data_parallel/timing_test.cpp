// The clock's times of a step, and what a dry run counts.
#include "ch02_data_parallel/report.hpp"
#include "common/support/main.hpp"
#include "common/support/test_main.hpp"

namespace fivecuts::data_parallel {
namespace {

bool first_rank() { return test_context().rank() == 0; }

double seconds(const char* name, const DryModel& model, int ranks, const Cluster& cluster) {
  return time_step(step_of(name, library_all_reduce), model, ranks, cluster).seconds;
}

const DryModel four_layers{ModelShape(4, {1000, 1000, false, true, false}), 64};

RANK_TEST(Times, WithoutCommunicationAllRanksTakeTheTimeOfOne) {
  if (!first_rank()) return;
  for (const char* name : {"laptop", "a100", "h100", "slow"}) {
    const Cluster cluster = load_cluster(name);
    const double alone = seconds("none", four_layers, 1, cluster);
    EXPECT_GT(alone, 0);
    for (const int n : {2, 3, 7}) EXPECT_EQ(seconds("none", four_layers, n, cluster), alone);
  }
}

// A ring per layer: 2(N-1) steps of a latency and a chunk, after the backward pass.
RANK_TEST(Times, AnAllReduceAddsItsRing) {
  if (!first_rank()) return;
  const Cluster cluster = load_cluster("h100");
  const double alone = seconds("per_layer", four_layers, 1, cluster);
  for (const int n : {2, 4, 5, 8, 16}) {
    const Link& link = cluster.link(n > 8);
    const double chunk = 4.0 * static_cast<double>(part_of(1'000'000, n, 0).count);
    const double ring = 2 * (n - 1) * (link.latency + chunk / link.bandwidth);
    EXPECT_NEAR(seconds("per_layer", four_layers, n, cluster), alone + 4 * ring, 1e-9 * alone) << n;
  }
}

RANK_TEST(Times, OverlapHidesAllButTheLastReduction) {
  if (!first_rank()) return;
  const Cluster cluster = load_cluster("h100");
  const DryModel model{ModelShape(4, {10'000, 10'000, false, true, false}), 512};
  const double alone = seconds("none", model, 4, cluster);
  const double reductions = seconds("per_layer", model, 4, cluster) - alone;
  const double exposed = seconds("overlapped", model, 4, cluster) - alone;
  EXPECT_LE(exposed, reductions / 4);
  EXPECT_GE(exposed,
            reductions / 4 - 2 * cluster.overhead);  // the sum of the losses runs beside it
}

// The root of gather_broadcast carries N-1 gradients in and N-1 out, one after the other.
RANK_TEST(Times, TheRootOfGatherBroadcastPaysForAll) {
  if (!first_rank()) return;
  Cluster cluster = load_cluster("h100");
  cluster.intra_node.latency = 0;
  cluster.memory_bandwidth = 1e30;
  cluster.overhead = 0;
  cluster.peak_f32 = 1e30;
  const double gradient = 4e6 / cluster.intra_node.bandwidth;
  const DryModel one_layer{ModelShape(1, four_layers.shape.front()), 64};
  for (const int n : {2, 3, 8}) {
    const double wire = 2 * (n - 1) * gradient;  // in and out
    EXPECT_NEAR(seconds("gather_broadcast", one_layer, n, cluster), wire, 1e-6 * wire) << n;
    // Of several layers, what goes out of one and what comes in of the next may cross.
    EXPECT_LE(seconds("gather_broadcast", four_layers, n, cluster), 4.000001 * wire) << n;
    EXPECT_GE(seconds("gather_broadcast", four_layers, n, cluster), 2 * wire) << n;
  }
}

RANK_TEST(Times, TheNotesCase) {
  if (!first_rank()) return;
  const NotesTimes times = notes_times(library_all_reduce);
  EXPECT_NEAR(times.alone, 1, 1e-9);
  EXPECT_NEAR(times.together, 1.1333333333, 1e-9);
  EXPECT_GT(times.overlapped, 1);
  EXPECT_LT(times.overlapped, 1.1);
}

RANK_TEST(Times, WeakScalingStartsFromOneRank) {
  if (!first_rank()) return;
  const Cluster cluster = load_cluster("a100");
  const Scaling scaling =
      weak_scaling(step_of("per_layer", library_all_reduce), four_layers, cluster);
  ASSERT_EQ(scaling.efficiencies.size(), 4u);
  EXPECT_EQ(scaling.alone, seconds("none", four_layers, 1, cluster));
  double before = 1;
  for (const auto& [n, efficiency] : scaling.efficiencies) {
    EXPECT_EQ(efficiency, scaling.alone / seconds("per_layer", four_layers, n, cluster)) << n;
    EXPECT_LT(efficiency, before) << n;
    before = efficiency;
  }
  EXPECT_EQ(scaling.efficiencies.back().first, 64);
}

// Every step's timeline covers it from beginning to end, on every rank, on every cluster.
RANK_TEST(Times, TimelinesCoverTheStep) {
  if (!first_rank()) return;
  for (const char* cluster : {"h100", "slow", "unit"}) {
    for (const NamedStep& step : all_steps(library_all_reduce)) {
      const TimedStep timed = time_step(step, four_layers, 3, load_cluster(cluster));
      const Extent extent = extent_of(timed.timeline);
      EXPECT_NEAR(extent.total(), timed.seconds, 1e-9 * timed.seconds) << step.name;
      EXPECT_EQ(timed.timeline.ranks.size(), 3u);
      EXPECT_EQ(timed.timeline.slots, std::string(cluster) == "unit");
    }
  }
}

/// All that is counted of three steps on this rank.
std::string account_of(Context& context) {
  context.clock.log().record(true);
  Communicator dp = context.world.split("dp", [](int) { return 0; });
  Replica replica(context.device, mlp_shape(64, 48, 10, 3), 1);
  const std::int64_t rows = part_of(101, dp.size(), dp.rank()).count;
  const Shard shard{Buffer(context.device, Category::activation, rows, 64),
                    Buffer(context.device, Category::activation, 1, rows, DType::i64), 101};
  zero(shard.x);
  zero(shard.labels);
  for (const Rung rung : {gather_broadcast, per_tensor, copied_bucket, own_order}) {
    training_step(replica, shard, dp, rung, library_all_reduce, {});
  }
  overlapped_step(replica, shard, dp, library_all_reduce, {});
  const WorkLedger& work = context.device.work();
  std::string text =
      fmt::format("{:a} {:a} {:a} {} {} {}\n", context.clock.now(), work.flops(), work.bytes(),
                  work.operations(), context.memory.peak(), context.memory.model_state());
  for (const auto& [key, t] : context.traffic.rows()) {
    text += fmt::format("{} {} {} {} {} {} {}\n", key.communicator, key.operation, key.modelled,
                        t.sent, t.received, t.sent_inter_node, t.messages);
  }
  for (const Event& e : context.clock.log().events()) {
    text += fmt::format("{} {:a} {:a} {:a} {}\n", e.name, e.start, e.end, e.waited, e.bytes);
  }
  return text;
}

// What mpirun's processes count, threads count, with numbers and without.
RANK_TEST(Times, TheSameOverEveryTransportAndDry) {
  Context& run = test_context();
  CommonOptions options;
  options.cluster = load_cluster("h100");
  std::vector<std::string> here;
  {
    const auto context = another_context(options);
    here = context->world.gather_text(account_of(*context));
    context->world.end_of_run();
  }
  if (!first_rank()) return;
  EXPECT_EQ(here, world_results<std::string>(run.size(), options, account_of));
  options.device = Device::Kind::meta;
  EXPECT_EQ(here, world_results<std::string>(run.size(), options, account_of));
}

// A dry run shows the claims that need counting only, and says so of the others.
RANK_TEST(DryRun, ShowsWhatCanBeCounted) {
  if (!first_rank()) return;
  CommonOptions dry;
  dry.device = Device::Kind::meta;
  dry.cluster = load_cluster("h100");
  const Digits digits = load_digits();
  run_world(3, dry, [&](Context& context) {
    Communicator dp = context.world.split("dp", [](int) { return 0; });
    TrainingOptions options;
    options.width = 10'000;
    options.layers = 72;
    const auto ladder = climb(context, dp, digits, options, library_all_reduce);
    EXPECT_TRUE(sums_are_golden(ladder));
    EXPECT_EQ(ladder[1].wire[0].sent, 2 * 4 * parameter_count(model_of(options)));
    ClaimRows rows(load_claims(source_folder() / "docs" / "claims.json"));
    measure_claims(context, dp, digits, options, library_all_reduce, {}, rows);
    EXPECT_TRUE(rows.all_hold()) << rows.text("en");
    for (const char* id : {"C01.10", "C02.1", "C02.2", "C02.8", "C02.13"}) {
      EXPECT_TRUE(rows.shows(id)) << id;
    }
    EXPECT_FALSE(rows.shows("C02.6"));
  });
}

RANK_TEST(Figure, OfTheLessonIsDrawnFromARun) {
  if (!first_rank()) return;
  CommonOptions options;
  options.cluster = load_cluster("h100");
  run_world(1, options, [](Context& context) {
    const Times times = time_steps(context, {}, library_all_reduce);
    EXPECT_TRUE(same_picture(figure(times, "h100"), "ch02_data_parallel/step.svg"));
  });
}

}  // namespace
}  // namespace fivecuts::data_parallel
