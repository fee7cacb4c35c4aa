// A training that is saved and resumed comes to the same, bit for bit, whoever has its state.
#include <algorithm>

#include "ch07_zero/checkpoint_cases.hpp"
#include "ch07_zero/safe_file.hpp"

namespace fivecuts::zero_redundancy {
namespace {

constexpr DType both[] = {DType::f32, DType::bf16};

// At the same number of ranks an interruption changes nothing, in the middle of an epoch too; at
// another stage neither.
RANK_TEST(Checkpoint, AnInterruptedTrainingIsTheUninterruptedOne) {
  Context& context = test_context();
  Communicator comm = dp();
  const SharedFolder folder;
  for (const DType precision : both) {
    const Recipe run = recipe(uneven(), precision);
    for_stages({.precision = precision}, [&](const Settings& settings) {
      const fs::path state = folder / fmt::format("{}{}", settings.stage, size_of(precision));
      Trainer trainer(context.device, comm, run.model, 3, settings);
      train_steps(trainer, context, comm, 0, 3);
      save(trainer, comm, run, 3, state);
      const std::uint64_t saved = hash(trainer, comm);
      train_steps(trainer, context, comm, 3, 6);
      const std::uint64_t want = hash(trainer, comm);
      for (const int stage : {settings.stage, 3 - settings.stage}) {
        Settings other = settings;
        other.stage = stage;
        Trainer resumed(context.device, comm, run.model, 99, other);  // other weights at first
        const Resumed from = resume(resumed, comm, run, state);
        EXPECT_EQ(from.steps, 3);
        EXPECT_EQ(from.ranks, comm.size());
        EXPECT_EQ(from.stage, settings.stage);
        EXPECT_EQ(hash(resumed, comm), saved);
        EXPECT_EQ(distinct_replicas(resumed, comm), 1);
        train_steps(resumed, context, comm, 3, 6);
        EXPECT_EQ(hash(resumed, comm), want);
        EXPECT_EQ(distinct_replicas(resumed, comm), 1);
      }
    });
  }
}

/// The whole state after `steps` steps in a world of threads, saved in `state`.
std::uint64_t saved_by(int ranks, const Recipe& run, const Settings& settings,
                       const fs::path& state) {
  return world_results<std::uint64_t>(
             ranks, {},
             [&](Context& context) {
               Communicator comm = context.world.split("dp", [](int) { return 0; });
               Trainer trainer(context.device, comm, run.model, 3, settings);
               train_steps(trainer, context, comm, 0, 3);
               save(trainer, comm, run, 3, state);
               return hash(trainer, comm);
             })
      .front();
}
struct Moved {
  std::uint64_t hash = 0;
  int replicas = 0;
};
Moved moved_to(int ranks, const Recipe& run, const Settings& settings, const fs::path& state) {
  return world_results<Moved>(ranks, {},
                              [&](Context& context) {
                                Communicator comm =
                                    context.world.split("dp", [](int) { return 0; });
                                Trainer trainer(context.device, comm, run.model, 99, settings);
                                resume(trainer, comm, run, state);
                                return Moved{hash(trainer, comm), distinct_replicas(trainer, comm)};
                              })
      .front();
}

// From 4 ranks to fewer and more, from any stage to any other; with shards of no elements too.
ONE_RANK_TEST(Checkpoint, MovesToOtherRanksAndStages) {
  const SharedFolder folder;
  int number = 0;
  for (const ModelShape& model : {uneven(), with_empty_shards()}) {
    for (const DType precision : both) {
      for_stages({.precision = precision}, [&](const Settings& settings) {
        const Recipe run = recipe(model, precision);
        const fs::path state = folder / std::to_string(++number);
        const std::uint64_t want = saved_by(4, run, settings, state);
        for (const int ranks : {2, 3, 5}) {
          for_stages(settings, [&](const Settings& other) {
            const Moved moved = moved_to(ranks, run, other, state);
            EXPECT_EQ(moved.hash, want) << "on " << ranks << " ranks";
            EXPECT_EQ(moved.replicas, 1);
          });
        }
      });
    }
  }
}

// The group of the first `ranks` ranks, for those that are in it.
Communicator first_ranks(int ranks) {
  return test_context().world.split("dp", [&](int r) { return r < ranks ? 0 : 1; });
}

RANK_TEST(Checkpoint, MovesToFewerAndMoreOfTheseRanks) {
  Context& context = test_context();
  const SharedFolder folder;
  const ModelShape tiny = {{1, 1, false}, {1, 2, false}};  // of three ranks, one has nothing
  for (const ModelShape& model : {uneven(), tiny}) {
    const Recipe run = recipe(model);
    for (const auto& [from, to] : {std::pair(1, context.size()), std::pair(context.size(), 1),
                                   std::pair(context.size(), std::max(1, context.size() - 1))}) {
      const fs::path state = folder / fmt::format("{}-{}-{}", model.size(), from, to);
      std::uint64_t want = 0, got = 1;
      Communicator savers = first_ranks(from), readers = first_ranks(to);
      if (context.rank() < from) {
        const Trainer trainer(context.device, savers, model, 3, {.stage = 2});
        save(trainer, savers, run, 7, state);
        want = hash(trainer, savers);
      }
      context.world.barrier();
      if (context.rank() < to) {
        Trainer trainer(context.device, readers, model, 99, {.stage = 1});
        EXPECT_EQ(resume(trainer, readers, run, state).steps, 7);
        for (Layer& layer : trainer.layers()) {
          EXPECT_EQ(layer.optimizer.step, 7);
          layer.optimizer.step = 0;  // as in the one that was never trained
        }
        got = hash(trainer, readers);
      }
      context.world.barrier();
      EXPECT_EQ(context.world.gather(got).front(), context.world.gather(want).front());
    }
  }
}

/// Bytes of a safetensors file before its numbers, as its first eight say.
std::int64_t header_bytes(const fs::path& file) {
  std::int64_t length = 0;
  std::memcpy(&length, text_of(file).data(), sizeof length);
  return 8 + length;
}

// Every byte of every file is written by one rank and read by one, whatever the stage.
RANK_TEST(Checkpoint, EachRankWritesAndReadsItsShard) {
  Context& context = test_context();
  Communicator comm = dp();
  const SharedFolder folder;
  for (const ModelShape& model : {uneven(), with_empty_shards()}) {
    std::int64_t own = 0;
    for (const LayerShape& shape : model) {
      own += part_of(shape.parameters(), comm.size(), comm.rank()).count;
    }
    for_stages({}, [&](const Settings& settings) {
      const fs::path state =
          folder / fmt::format("{}-{}", model.size() + model[1].in, settings.stage);
      const Trainer trainer(context.device, comm, model, 3, settings);
      const std::int64_t written = save(trainer, comm, recipe(model), 0, state);
      const fs::path file = state / fmt::format("save-1/rank-{}.safetensors", comm.rank());
      EXPECT_EQ(written, static_cast<std::int64_t>(fs::file_size(file)));
      EXPECT_EQ(written, 12 * own + header_bytes(file));
      Trainer other(context.device, comm, model, 99, settings);
      EXPECT_EQ(resume(other, comm, recipe(model), state).bytes, written);
    });
  }
}

// Two ranks read what one wrote: each a half, and one of them the header.
RANK_TEST(Checkpoint, ReadsOnlyTheRangesThatItNeeds) {
  Context& context = test_context();
  const SharedFolder folder;
  const Recipe run = recipe(uneven());
  Communicator alone = first_ranks(1), all = dp();
  const fs::path state = folder / "state";
  if (context.rank() == 0) {
    save(Trainer(context.device, alone, run.model, 3, {}), alone, run, 0, state);
  }
  context.world.barrier();
  std::int64_t own = 0;
  for (const LayerShape& shape : run.model) {
    own += part_of(shape.parameters(), all.size(), all.rank()).count;
  }
  const std::int64_t header =
      all.rank() == 0 ? header_bytes(state / "save-1/rank-0.safetensors") : 0;
  for_stages({}, [&](const Settings& settings) {
    Trainer trainer(context.device, all, run.model, 99, settings);
    EXPECT_EQ(resume(trainer, all, run, state).bytes, 12 * own + header);
  });
}

RANK_TEST(Checkpoint, ASaveTakesThePlaceOfTheOneBefore) {
  Context& context = test_context();
  Communicator comm = dp();
  const SharedFolder folder;
  const fs::path state = folder / "state";
  const Recipe run = recipe(uneven());
  Trainer trainer(context.device, comm, run.model, 3, {.stage = 1});
  for (int step = 0; step < 3; ++step) {
    train_steps(trainer, context, comm, step, step + 1);
    save(trainer, comm, run, step + 1, state);
  }
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(state)) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"manifest.json", "save-3"}));
  Trainer resumed(context.device, comm, run.model, 99, {.stage = 1});
  EXPECT_EQ(resume(resumed, comm, run, state).steps, 3);
  EXPECT_EQ(hash(resumed, comm), hash(trainer, comm));
}

// A run that goes on from an epoch's end on other ranks follows golden like one that was never
// interrupted.
ONE_RANK_TEST(Checkpoint, ATrainingThatMovedFollowsGolden) {
  const SharedFolder folder;
  for (const DType precision : both) {
    const fs::path state = folder / std::to_string(size_of(precision));
    Setting setting{.training = {.batch = 97, .epochs = 1, .precision = precision}, .clip = 0.5};
    const auto run = [&](int ranks, const auto& hooks) {
      return world_results<std::string>(
                 ranks, {},
                 [&](Context& context) {
                   Communicator comm = context.world.split("dp", [](int) { return 0; });
                   const TrainingResult result =
                       train(context, comm, digits(), setting, hooks(comm));
                   return result.early.ok && result.weights.ok && result.loss.ok
                              ? fmt::format("{} epochs from step {}", result.epochs.size(),
                                            result.resumed)
                              : result.early.text + result.weights.text + result.loss.text;
                 })
          .front();
    };
    const Recipe recipe = {data_parallel::model_of(setting.training), precision, 1, 97, 3e-3, 0.5};
    EXPECT_EQ(run(4,
                  [&](Communicator& comm) {
                    TrainingHooks hooks;
                    hooks.epoch = [&](const Trainer& trainer, std::int64_t steps, const Epoch&) {
                      save(trainer, comm, recipe, steps, state);
                    };
                    return hooks;
                  }),
              "1 epochs from step 0");
    setting.stage = 1;
    setting.training.epochs = 3;
    EXPECT_EQ(run(3,
                  [&](Communicator& comm) {
                    TrainingHooks hooks;
                    hooks.start = [&](Trainer& trainer) {
                      return resume(trainer, comm, recipe, state).steps;
                    };
                    return hooks;
                  }),
              "2 epochs from step 15");
  }
}

// One file, the same at whatever stage and on however many ranks; rank 0 has a shard of a layer of
// it at a time.
RANK_TEST(Export, WritesAllWeightsAndHoldsAShard) {
  Context& context = test_context();
  Communicator comm = dp();
  const SharedFolder folder;
  std::string first;
  for (const DType precision : both) {
    for_stages({.precision = precision}, [&](const Settings& settings) {
      const Trainer trainer(context.device, comm, uneven(), 3, settings);
      std::string want;
      for (std::size_t k = 0; k < uneven().size(); ++k) {
        const auto layer = whole(trainer, k, Kind::weights, comm);
        want.append(reinterpret_cast<const char*>(layer.data()), layer.size() * sizeof(float));
      }
      context.memory.reset_peak();
      const std::int64_t at_rest = context.memory.live();
      const fs::path file = folder / "model.safetensors";
      const std::int64_t bytes = export_weights(trainer, comm, file);
      const std::int64_t shard = 4 * part_of(1430, comm.size(), 1 % comm.size()).count;
      EXPECT_EQ(context.memory.peak() - at_rest, comm.rank() == 0 && comm.size() > 1 ? shard : 0);
      const std::string text = text_of(file);
      EXPECT_EQ(static_cast<std::int64_t>(text.size()), bytes);
      EXPECT_TRUE(text.ends_with(want));
      if (first.empty()) first = text;
      EXPECT_EQ(text, first);
      EXPECT_TRUE(has(text, R"("layers.0.weight":{"data_offsets":[0,5632],"dtype":"F32",)"
                            R"("shape":[64,22]})"));
      EXPECT_TRUE(has(text, R"("layers.2.bias":{"data_offsets":[7256,7260],"dtype":"F32",)"
                            R"("shape":[1]})"));
      EXPECT_TRUE(has(text, R"("layers.3.bias":{"data_offsets":[7344,7428])"));
      comm.barrier();
    });
  }
  const Trainer trainer(context.device, comm, uneven(), 3, {});
  std::string said;
  try {
    export_weights(trainer, comm, folder / "no" / "model.safetensors");
  } catch (const Failure& failure) {
    said = failure.what();
  }
  EXPECT_TRUE(has(said, "no/model.safetensors': No such file or directory")) << said;
}

}  // namespace
}  // namespace fivecuts::zero_redundancy
