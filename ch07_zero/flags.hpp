#pragma once
// The program's flags, and which of them do not go together.
#include "ch07_zero/experiments.hpp"
#include "ch07_zero/training_files.hpp"
#include "common/support/main.hpp"

namespace fivecuts::zero_redundancy {

struct Options {
  std::int64_t stage = 3;
  bool no_prefetch = false;
  Setting setting{};
  const CLI::Option *layers = nullptr, *width = nullptr;  ///< to see whether they were given
  TrainingFiles files{};
};

inline void declare(CLI::App& app, Options& o) {
  data_parallel::TrainingOptions& t = o.setting.training;
  add_count(app, "--stage", o.stage, 0, 3,
            "what is cut in N: 0 nothing, 1 optimizer state, 2 gradients too, 3 parameters too");
  app.add_flag("--no-prefetch", o.no_prefetch,
               "stage 3: gather a layer only when it is to be computed");
  add_positive(app, "--clip", o.setting.clip, 1e6,
               "longest mean gradient, over the whole model (without it: any)")
      ->default_str("");
  add_count(app, "--batch", t.batch, 1, 1438, "rows of the global batch, over all ranks");
  add_count(app, "--micro-batches", t.micro_batches, 1, 1438,
            "parts in which each rank computes its rows");
  add_count(app, "--epochs", t.epochs, 1, 1000, "passes over the digits");
  o.layers = add_count(app, "--layers", t.layers, 1, 1000, "layers of the model");
  o.width = add_count(app, "--width", t.width, 1, 1'000'000, "width of its hidden layers");
  app.add_option_function<std::string>(
         "--model", [&o](const std::string& name) { o.setting.seven_billion = name == "7B"; },
         "one for the digits, or figure 8's of 7B exactly, 70 layers of 10,000 x 10,000 (dry)")
      ->check(CLI::IsMember({"digits", "7B"}))
      ->type_name("NAME")
      ->default_str("digits");
  add_count(app, "--seed", t.seed, 0, INT32_MAX, "of the weights and the order of the data");
  add_positive(app, "--learning-rate", t.learning_rate, 0.01, "of Adam");
  app.add_option_function<std::string>(
         "--precision",
         [&t](const std::string& name) { t.precision = name == "bf16" ? DType::bf16 : DType::f32; },
         "of parameters and gradients: fp32, or bf16 with weights in f32 beside it")
      ->check(CLI::IsMember({"fp32", "bf16"}))
      ->type_name("NAME")
      ->default_str("fp32");
  app.add_option("--save", o.files.save,
                 "write a checkpoint there after each epoch, in the place of the one before")
      ->type_name("FOLDER");
  app.add_option("--resume", o.files.resume,
                 "go on from the checkpoint there, saved by any number of ranks at any stage")
      ->type_name("FOLDER");
  app.add_option("--export", o.files.weights,
                 "write the weights of all layers as one safetensors file")
      ->type_name("FILE");
  app.add_option("--figure", o.files.figure, "write live memory over a step (figure 7) as SVG")
      ->type_name("FILE");
  app.add_option("--plot", o.files.plot, "write model state over ranks (figure 8) as SVG")
      ->type_name("FILE");
}

/// The setting that the flags describe. Throws UsageError, before any communication.
inline Setting settled(const Options& o, int ranks, bool dry) {
  Setting setting = o.setting;
  setting.stage = static_cast<int>(o.stage);
  setting.prefetch = !o.no_prefetch;
  const data_parallel::TrainingOptions& t = setting.training;
  if (o.no_prefetch && o.stage < 3) {
    throw UsageError(fmt::format(
        "--no-prefetch is about gathering parameters, which stage {} keeps whole; give it with "
        "--stage 3",
        o.stage));
  }
  if (dry && (o.files.save || o.files.resume || o.files.weights)) {
    throw UsageError(
        "--save, --resume and --export are about numbers, and a dry run has none; give --device "
        "cpu, or leave them out");
  }
  if (setting.seven_billion && !dry) {
    throw UsageError("--model 7B is for a dry run; add --device meta");
  }
  if (setting.seven_billion && o.layers->count() + o.width->count() > 0) {
    throw UsageError(
        "--model 7B has 70 layers of 10,000 x 10,000; leave out --layers and --width, or --model");
  }
  // Deeper models and larger steps amplify rounding until no comparison with golden means anything.
  if (!dry && (t.layers > 8 || t.width > 4096)) {
    throw UsageError(fmt::format(
        "{} layers of {} are for a dry run: with numbers at most --layers 8 and --width "
        "4096; try --device meta",
        t.layers, t.width));
  }
  if (t.batch < ranks) {
    throw UsageError(
        fmt::format("--batch {} leaves some of {} ranks without a row; give at least {}, as in "
                    "--batch 100, or start fewer ranks",
                    t.batch, ranks, ranks));
  }
  return setting;
}

}  // namespace fivecuts::zero_redundancy
