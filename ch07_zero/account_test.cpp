// Memory and bytes on the wire, exact on every rank.
#include "ch07_zero/test_cases.hpp"

namespace fivecuts::zero_redundancy {
namespace {

Elements elements_of(const ModelShape& model) {
  return Elements(model, test_context().size(), test_context().rank());
}

RANK_TEST(Memory, AtRestIsSharedOutAsTheStageSays) {
  const MemoryLedger& memory = test_context().memory;
  Communicator comm = dp();
  for (const ModelShape& model : {uneven(), with_empty_shards()}) {
    const Elements e = elements_of(model);
    for (const DType precision : {DType::f32, DType::bf16}) {
      for_stages({.precision = precision}, [&](const Settings& settings) {
        const auto [weight, optimizer] = bytes_of(precision);
        const int stage = settings.stage;
        Trainer trainer(test_context().device, comm, model, 3, settings);
        const auto expect_at_rest = [&] {
          EXPECT_EQ(memory.live(Category::parameter), weight * (stage >= 3 ? e.own : e.all));
          EXPECT_EQ(memory.live(Category::gradient), weight * (stage >= 2 ? e.own : e.all));
          EXPECT_EQ(memory.live(Category::optimizer), optimizer * (stage >= 1 ? e.own : e.all));
        };
        expect_at_rest();
        for (int k = 0; k < 2; ++k) {
          trainer.step(some_shards(comm, 10, 2, precision), {});
          expect_at_rest();
          EXPECT_EQ(memory.live(Category::activation), 0);
        }
      });
      EXPECT_EQ(memory.live(), 0);
    }
  }
}

// Sixteen bytes a parameter, once in the job where they are cut, and once a rank where not.
RANK_TEST(Memory, AllRanksTogetherHoldEachShardOnce) {
  Communicator comm = dp();
  const std::int64_t psi = parameter_count(uneven()), n = comm.size();
  const std::int64_t want[] = {16 * psi * n, 4 * psi * n + 12 * psi, 2 * psi * n + 14 * psi,
                               16 * psi};
  for_stages({.precision = DType::bf16}, [&](const Settings& settings) {
    const Trainer trainer(test_context().device, comm, uneven(), 3, settings);
    std::int64_t together = 0, moments = 0;
    for (const std::int64_t of_rank : comm.gather(test_context().memory.model_state())) {
      together += of_rank;
    }
    for (const Layer& layer : trainer.layers()) moments += layer.optimizer.m.tensor().count();
    EXPECT_EQ(together, want[settings.stage]);
    EXPECT_EQ(moments, settings.stage == 0 ? psi : elements_of(uneven()).own);
  });
}

// What a stage needs for a moment: a layer's gradient at 2, at 3 a layer's parameters, or two of
// neighbours, one of which is on its way.
RANK_TEST(Memory, PeaksAreALayer) {
  MemoryLedger& memory = test_context().memory;
  Communicator comm = dp();
  for (const ModelShape& model : {uneven(), with_empty_shards()}) {
    const Elements e = elements_of(model);
    const std::int64_t chunk = e.ranks == 1 ? 0 : part_of(e.largest(), e.ranks, 0).count;
    for (const DType precision : {DType::f32, DType::bf16}) {
      for (const bool prefetch : {true, false}) {
        for_stages({.precision = precision, .prefetch = prefetch}, [&](Settings settings) {
          const std::int64_t weight = bytes_of(precision).weight;
          const int stage = settings.stage;
          Trainer trainer(test_context().device, comm, model, 3, settings);
          memory.reset_peak();
          trainer.step(some_shards(comm, 10, 1, precision), {});
          const std::int64_t whole = prefetch ? e.largest_pair() : e.largest();
          EXPECT_EQ(memory.peak(Category::parameter),
                    weight * (stage >= 3 ? e.own + whole : e.all));
          EXPECT_EQ(memory.peak(Category::gradient),
                    weight * (stage >= 2 ? e.own + e.largest() : e.all));
          EXPECT_EQ(memory.peak(Category::workspace), weight * chunk);
        });
      }
    }
  }
}

// Everything together, at the same moment: in the last layer's backward pass all activations are
// still there. A layer's gradient may be whole then, or parameters, but not one more of both.
RANK_TEST(Memory, PeakOfAllIsExact) {
  MemoryLedger& memory = test_context().memory;
  Communicator comm = dp();
  constexpr std::int64_t width = 64, layers = 4, layer = width * width;
  const ModelShape model(layers, {width, width, false});
  const std::int64_t chunk = comm.size() == 1 ? 0 : part_of(layer, comm.size(), 0).count;
  for (const DType precision : {DType::f32, DType::bf16}) {
    for (const bool prefetch : {true, false}) {
      for_stages({.precision = precision, .prefetch = prefetch}, [&](const Settings& settings) {
        const std::int64_t weight = bytes_of(precision).weight;
        const std::int64_t whole = settings.stage < 2 ? 0 : settings.stage == 3 && prefetch ? 2 : 1;
        Trainer trainer(test_context().device, comm, model, 3, settings);
        const std::int64_t state = memory.model_state();
        const auto shards = some_shards(comm, 30, 1, precision);
        const std::int64_t rows = shards[0].rows();
        trainer.step(shards, {});  // its work memory is there from now on
        memory.reset_peak();
        trainer.step(shards, {});
        // Pixels, two tensors that each layer keeps, and the gradient of an input; labels, losses.
        const std::int64_t activations =
            rows * (weight * width * (1 + 2 * layers + 1) + std::int64_t{sizeof(std::int64_t)} + 4);
        EXPECT_EQ(memory.peak(Category::activation), activations);
        EXPECT_EQ(memory.peak(), state + weight * (whole * layer + chunk) + activations);
      });
    }
  }
}

RANK_TEST(Memory, StepsAfterTheFirstAskForNothing) {
  CachingAllocator& allocator = test_context().device.allocator();
  Communicator comm = dp();
  if (!allocator.keeps()) return;
  for_stages({.clip = 0.1}, [&](const Settings& settings) {
    Trainer trainer(test_context().device, comm, uneven(), 3, settings);
    const auto shards = some_shards(comm, 30, 2);
    trainer.step(shards, {});
    const std::int64_t asked = allocator.system_allocations();
    for (int k = 0; k < 5; ++k) trainer.step(shards, {});
    EXPECT_EQ(allocator.system_allocations(), asked);
  });
}

Traffic traffic_of(const ModelShape& model, const Settings& settings, std::int64_t micro_batches) {
  Communicator comm = dp();
  Trainer trainer(test_context().device, comm, model, 3, settings);
  const auto shards = some_shards(comm, 30, micro_batches, settings.precision);
  const Traffic before = test_context().traffic.measured("dp");
  trainer.step(shards, {});
  return test_context().traffic.measured("dp") - before;
}

RANK_TEST(Wire, CarriesTwoTwoTwoThree) {
  for (const ModelShape& model : {uneven(), with_empty_shards()}) {
    const Elements e = elements_of(model);
    const std::int64_t layers = static_cast<std::int64_t>(model.size());
    for (const DType precision : {DType::f32, DType::bf16}) {
      for (const std::int64_t k : {1, 2, 4}) {
        for_stages({.precision = precision}, [&](const Settings& settings) {
          const bool once = settings.stage <= 1, three = settings.stage == 3;
          const std::int64_t scatters = once ? 1 : k, gathers = three ? 2 * k : 1;
          const Traffic used = traffic_of(model, settings, k);
          EXPECT_EQ(used.sent, bytes_of(precision).weight *
                                   (scatters * e.reduce_scatter() + gathers * e.all_gather()));
          EXPECT_EQ(used.messages, (scatters + gathers) * layers * (e.ranks - 1));
        });
      }
    }
  }
}

// As much in one layer as in sixteen; the messages are sixteen times as many. What the layers
// compute changes nothing in it: dry ones are enough.
RANK_TEST(Wire, BytesDoNotDependOnTheNumberOfLayersAndMessagesDo) {
  constexpr std::int64_t width = 240, psi = width * width;  // 1 to 5 divide a sixteenth of it
  const int n = test_context().size();
  CommonOptions dry;
  dry.device = Device::Kind::meta;
  for (const std::int64_t halved : {1, 2, 4}) {
    const std::int64_t layers = halved * halved, side = width / halved;
    const auto context = another_context(dry);
    Communicator comm = context->world.split("dp", [](int) { return 0; });
    const ModelShape model(static_cast<std::size_t>(layers), {side, side, false});
    Trainer trainer(context->device, comm, model, 3, {.stage = 3});
    std::vector<Shard> row;
    row.push_back({Buffer(context->device, Category::activation, 1, side),
                   Buffer(context->device, Category::activation, 1, 1, DType::i64), n});
    trainer.step(row, {});
    const Traffic used = context->traffic.measured("dp");
    EXPECT_EQ(used.sent, 4 * 3 * psi * (n - 1) / n);
    EXPECT_EQ(used.messages, 3 * layers * (n - 1));
  }
}

// Clipping adds a number from each rank to each other one.
RANK_TEST(Wire, ClippingSendsANumberARank) {
  for_stages({}, [&](Settings settings) {
    const Traffic without = traffic_of(uneven(), settings, 1);
    settings.clip = 0.1;
    const Traffic with = traffic_of(uneven(), settings, 1);
    EXPECT_EQ((with - without).sent, 4 * (test_context().size() - 1));
    EXPECT_EQ((with - without).messages, test_context().size() - 1);
  });
}

}  // namespace
}  // namespace fivecuts::zero_redundancy
