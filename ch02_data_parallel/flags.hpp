#pragma once
// The program's flags, and which of them do not go together.
#include "ch02_data_parallel/experiments.hpp"
#include "common/support/main.hpp"

namespace fivecuts::data_parallel {

/// What the program takes beside the training's options.
struct Options : TrainingOptions {
  std::optional<std::filesystem::path> figure{}, trace{};
};

inline void declare(CLI::App& app, Options& o) {
  add_count(app, "--batch", o.batch, 1, 1438, "rows of the global batch, over all ranks");
  add_count(app, "--micro-batches", o.micro_batches, 1, 1438,
            "parts in which each rank computes its rows");
  add_count(app, "--epochs", o.epochs, 1, 1000, "passes over the digits");
  add_count(app, "--layers", o.layers, 1, 1000, "layers of the model");
  add_count(app, "--width", o.width, 1, 1'000'000, "width of its hidden layers");
  add_count(app, "--seed", o.seed, 0, INT32_MAX, "of the weights and the order of the data");
  add_positive(app, "--learning-rate", o.learning_rate, 0.01, "of Adam");
  app.add_option_function<std::string>(
         "--precision",
         [&o](const std::string& name) { o.precision = name == "bf16" ? DType::bf16 : DType::f32; },
         "of the replica: fp32, or bf16 with weights in f32 beside it")
      ->check(CLI::IsMember({"fp32", "bf16"}))
      ->type_name("NAME")
      ->default_str("fp32");
  std::vector<std::string> names;
  for (const NamedRung& rung : all_rungs()) names.emplace_back(rung.name);
  const auto choose = [&o](const std::string& chosen) {
    for (const auto& [name, rung] : all_rungs()) {
      if (name == chosen) o.rung = rung;
    }
  };
  CLI::Option* rung =
      app.add_option_function<std::string>("--rung", choose, "how gradients are summed in training")
          ->check(CLI::IsMember(names))
          ->type_name("NAME")
          ->default_str("per_layer");
  app.add_flag("--overlap", o.overlap, "reduce each layer while the backward pass goes on")
      ->excludes(rung);
  app.add_option("--figure", o.figure, "write the timelines of a step to this file, as SVG")
      ->type_name("FILE");
  app.add_option("--trace", o.trace, "write them as Chrome trace events, for ui.perfetto.dev")
      ->type_name("FILE");
}

/// Throws UsageError, before any communication.
inline void refuse_impossible(const Options& o, int ranks, bool dry) {
  if (o.figure && o.figure == o.trace) {
    throw UsageError(
        fmt::format("--figure and --trace would both be written to '{}'; give two files, as in "
                    "--figure step.svg "
                    "--trace trace.json",
                    o.figure->string()));
  }
  // Deeper models and larger steps amplify rounding until no comparison with golden means anything.
  if (!dry && (o.layers > 8 || o.width > 4096)) {
    throw UsageError(fmt::format(
        "{} layers of {} are for a dry run: with numbers at most --layers 8 and --width "
        "4096; try --device meta",
        o.layers, o.width));
  }
  if (o.batch < ranks) {
    throw UsageError(
        fmt::format("--batch {} leaves some of {} ranks without a row; give at least {}, as in "
                    "--batch 100, or start fewer ranks",
                    o.batch, ranks, ranks));
  }
  if (o.overlap && o.micro_batches > 1) {
    throw UsageError(fmt::format(
        "--overlap reduces in every backward pass, so it goes with one micro-batch, not {}; "
        "give --overlap alone",
        o.micro_batches));
  }
}

}  // namespace fivecuts::data_parallel
