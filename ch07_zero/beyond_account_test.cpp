// beyond/: memory, bytes on the wire and what is computed, exact on every rank.
#include "ch07_zero/beyond/beyond.hpp"
#include "ch07_zero/test_cases.hpp"

namespace fivecuts::zero_redundancy {
namespace {

struct Used {
  std::int64_t state = 0, parameters = 0;  ///< at rest, and at the peak
  Traffic sent{};
  double flops = 0;
};

/// A step of `make`'s trainer, on the communicator of that name or on all.
Used step_of(const Make& make, const ModelShape& model, const Settings& settings,
             std::int64_t micro_batches = 1, const std::string& name = "") {
  Context& context = test_context();
  Communicator comm = dp();
  const auto trainer = make(context.device, comm, model, 3, settings);
  const auto shards = some_shards(comm, 30, micro_batches, settings.precision);
  Used used{.state = context.memory.model_state()};
  const Traffic before = context.traffic.measured(name);
  const double computed = context.device.work().flops();
  context.memory.reset_peak();
  trainer->step(shards, {});
  used.parameters = context.memory.peak(Category::parameter);
  used.sent = context.traffic.measured(name) - before;
  used.flops = context.device.work().flops() - computed;
  EXPECT_EQ(context.memory.model_state(), used.state) << "at rest again";
  return used;
}

Elements of_run(const ModelShape& model) {
  return Elements(model, test_context().size(), test_context().rank());
}

/// f(model, bytes of a number, settings) in both precisions.
template <class F>
void for_models(int stage, const F& f) {
  for (const ModelShape& model : {uneven(), with_empty_shards()}) {
    for (const DType precision : {DType::f32, DType::bf16}) {
      f(model, bytes_of(precision).weight, Settings{stage, precision, false});
    }
  }
}

RANK_TEST(Kept, ParametersAreGatheredOnce) {
  for_models(3, [](const ModelShape& model, std::int64_t weight, const Settings& settings) {
    const Elements e = of_run(model);
    const auto layers = static_cast<std::int64_t>(model.size());
    for (const std::int64_t k : {1, 3}) {
      const Used used = step_of(make_trainer<KeptParameters>, model, settings, k);
      EXPECT_EQ(used.sent.sent, weight * k * (e.reduce_scatter() + e.all_gather()));
      EXPECT_EQ(used.sent.messages, 2 * k * layers * (e.ranks - 1));
      EXPECT_EQ(used.parameters, weight * (e.own + e.all));
      EXPECT_EQ(used.state, 16 * e.own);
    }
  });
}

RANK_TEST(AllReduceAndGather, SendsThreeInsteadOfTwo) {
  for_models(1, [](const ModelShape& model, std::int64_t weight, const Settings& settings) {
    const Elements e = of_run(model);
    const auto layers = static_cast<std::int64_t>(model.size());
    for (const std::int64_t k : {1, 3}) {
      const Used used = step_of(make_trainer<AllReduceAndGather>, model, settings, k);
      EXPECT_EQ(used.sent.sent, weight * (e.reduce_scatter() + 2 * e.all_gather()));
      EXPECT_EQ(used.sent.messages, 3 * layers * (e.ranks - 1));
      EXPECT_EQ(used.state, step_of(make_trainer<>, model, settings, k).state);
    }
  });
}

RANK_TEST(OneOwner, SendsItsLayersToAll) {
  const std::int64_t n = test_context().size(), r = test_context().rank();
  for_models(3, [&](const ModelShape& model, std::int64_t weight, const Settings& settings) {
    std::int64_t owned = 0, sent = 0, messages = 0;
    for (std::size_t k = 0; k < model.size(); ++k) {
      const std::int64_t count = model[k].parameters();
      const std::int64_t chunk = part_of(count, static_cast<int>(n), static_cast<int>(r)).count;
      const bool owner = static_cast<std::int64_t>(k) % n == r;
      owned += owner ? count : 0;
      sent += count - chunk + (owner ? 2 * (n - 1) * count : chunk);
      messages += n - 1 + (owner ? 2 * (n - 1) : 1);
    }
    const Used used = step_of(make_trainer<OneOwner>, model, settings);
    EXPECT_EQ(used.state, 16 * owned);
    EXPECT_EQ(used.parameters, weight * (owned + of_run(model).largest()));
    EXPECT_EQ(used.sent.sent, weight * sent);
    EXPECT_EQ(used.sent.messages, messages);
  });
}

RANK_TEST(Hybrid, SendsAShardAcrossAndTheRestInside) {
  const int n = test_context().size(), r = test_context().rank();
  for (int group = 1; group <= n; ++group) {
    if (n % group != 0) continue;
    const Make make = [group](Device& device, const Communicator& comm, const ModelShape& shape,
                              std::uint64_t seed, const Settings& settings) {
      return std::make_unique<HybridSharding>(device, comm, shape, seed, settings, group);
    };
    for_models(3, [&](const ModelShape& model, std::int64_t weight, const Settings& settings) {
      const auto layers = static_cast<std::int64_t>(model.size());
      const Elements e(model, group, r % group);
      ModelShape shards;  // a layer of each shard: what the replicas sum
      for (const std::int64_t count : e.layers) {
        shards.push_back({part_of(count, group, r % group).count, 1, false});
      }
      const Elements shared(shards, n / group, r / group);
      for (const std::int64_t k : {1, 3}) {
        const Used inside = step_of(make, model, settings, k, "inside");
        EXPECT_EQ(inside.state, 16 * e.own);
        EXPECT_EQ(inside.parameters, weight * (e.own + e.largest()));
        EXPECT_EQ(inside.sent.sent, weight * k * (e.reduce_scatter() + 2 * e.all_gather()));
        EXPECT_EQ(inside.sent.messages, 3 * k * layers * (group - 1));
        const Traffic across = step_of(make, model, settings, k, "across").sent;
        EXPECT_EQ(across.sent, weight * (shared.reduce_scatter() + shared.all_gather()));
        EXPECT_EQ(across.messages, 2 * layers * (n / group - 1));
      }
    });
  }
}

// A layer's output stays, and what was dropped is computed once more; nothing else is sent.
RANK_TEST(Recomputation, TakesAForwardPassForTheDroppedHalf) {
  Context& context = test_context();
  Communicator comm = dp();
  const ModelShape model = {{64, 22}, {22, 16}, {16, 21}};
  for_stages({}, [&](const Settings& settings) {
    const auto shards = some_shards(comm, 30);
    std::int64_t outputs = 0;
    for (const LayerShape& shape : model) outputs += 4 * shards[0].rows() * shape.out;
    double of_forward = 0;
    const auto kept = [&](Trainer&& trainer) {
      const std::int64_t before = context.memory.live(Category::activation);
      const double computed = context.device.work().flops();
      std::vector<Saved> saved;
      trainer.forward(shards[0], saved);
      of_forward = context.device.work().flops() - computed;
      return context.memory.live(Category::activation) - before;
    };
    EXPECT_EQ(kept(Trainer(context.device, comm, model, 3, settings)), 2 * outputs);
    EXPECT_EQ(kept(Recomputation(context.device, comm, model, 3, settings)), outputs);
    const Used plain = step_of(make_trainer<>, model, settings);
    const Used again = step_of(make_trainer<Recomputation>, model, settings);
    EXPECT_EQ(again.flops - plain.flops, of_forward);
    EXPECT_EQ(again.sent, plain.sent);
    EXPECT_EQ(again.parameters, plain.parameters);
  });
}

RANK_TEST(Gradients, InF32TakeTwoBytesMore) {
  const Elements e = of_run(uneven());
  for_stages({.precision = DType::bf16}, [&](Settings settings) {
    const Used halves = step_of(make_trainer<>, uneven(), settings);
    settings.f32_gradients = true;
    const Used whole = step_of(make_trainer<>, uneven(), settings);
    EXPECT_EQ(whole.state - halves.state, 2 * (settings.stage >= 2 ? e.own : e.all));
    EXPECT_EQ(whole.sent.sent - halves.sent.sent,
              2 * (e.reduce_scatter() + (settings.stage == 0 ? e.all_gather() : 0)));
  });
}

}  // namespace
}  // namespace fivecuts::zero_redundancy
