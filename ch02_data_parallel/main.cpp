// ch02: data parallelism on the digits.
//
//     mpirun -n 4 build/ch02_data_parallel/ch02_data_parallel
//
// Prints the ladder (what each rung leaves behind and puts on the wire), the training curve beside
// the golden model's, and the notes' claims with what was measured. Exits with 0 only if all of it
// agrees.
#include "ch02_data_parallel/flags.hpp"
#include "common/observe/table.hpp"

using namespace fivecuts;
using namespace fivecuts::data_parallel;

namespace {

void print_ladder(const Context& context, const std::vector<RungRow>& ladder) {
  Table table({"rung", "gradient", "replicas", "reductions", "rank 0 sends", "the last",
               "all ranks", "bytes"});
  for (const RungRow& row : ladder) {
    std::int64_t all = 0;
    for (const Traffic& of_rank : row.wire) all += of_rank.sent;
    table.row({row.name, row.gradient.ok ? "golden" : "differs",
               std::to_string(row.distinct_replicas), std::to_string(row.calls),
               std::to_string(row.wire.front().sent), std::to_string(row.wire.back().sent),
               std::to_string(all), row.modelled ? "modelled" : "measured"});
  }
  context.say(
      "The ladder: 3 steps each from one start. Different replicas at the end; all-reduces and "
      "bytes a step\n{}\n",
      table.text());
}

/// All rungs but `none`, which is there to show what goes wrong.
bool sums_are_golden(const std::vector<RungRow>& ladder) {
  return std::all_of(ladder.begin() + 1, ladder.end(), [](const RungRow& row) {
    return row.gradient.ok && row.distinct_replicas == 1;
  });
}

int story(Context& context, const TrainingOptions& o) {
  refuse_impossible(o, context.size());
  const Digits digits = load_digits();
  ClaimRows claims(load_claims(source_folder() / "docs" / "claims.json"));
  Communicator dp = context.world.split("dp", [](int) { return 0; });
  const ModelShape model = model_of(o);
  context.say(
      "ch02 data parallel: {} rank(s) on the cpu over {}, {} parameters in {} layers\n"
      "global batch {}, data parallel {}, accumulation {}, rows of a micro-batch {} at most\n\n",
      dp.size(), dp.transport().name(), parameter_count(model), model.size(), o.batch, dp.size(),
      o.micro_batches,
      part_of(part_of(o.batch, dp.size(), 0).count, static_cast<int>(o.micro_batches), 0).count);

  const std::vector<RungRow> ladder = climb(context, dp, digits, o, library_all_reduce);
  print_ladder(context, ladder);
  const Reunion reunion = bring_together(context, dp, o);
  context.say(
      "Different starts: {} replicas; after a broadcast from rank 0: {}, {} ranks changed\n\n",
      reunion.distinct_before, reunion.distinct_after, reunion.changed_ranks);

  context.say("Training on {} digits, {} held out{}\n  epoch  loss     golden   accuracy  golden\n",
              digits.train.count(), digits.test.count(),
              o.overlap ? ", reductions overlapped" : "");
  const TrainingResult result =
      train(context, dp, digits, o, library_all_reduce, [&](std::size_t n, const Epoch& e) {
        context.say("  {:5}  {:.4f}   {:.4f}   {:6.2f} %  {:6.2f} %\n", n, e.loss, e.golden_loss,
                    100 * e.accuracy, 100 * e.golden_accuracy);
      });
  const bool to_the_end = follows_to_the_end(o);
  context.say("golden, after {} steps: {}\n", std::min(result.steps, early_steps),
              result.early.text);
  if (to_the_end) {
    context.say("golden, at the end: {}\ngolden, all epochs: {}\n\n", result.weights.text,
                result.loss.text);
  } else {
    context.say(
        "golden, at the end: not judged, since with these options rounding grows too far\n\n");
  }

  measure_claims(context, dp, digits, o, library_all_reduce, result, claims);
  context.say("Claims of the notes\n{}", claims.text(context.options.language));
  const bool golden = result.early.ok && (!to_the_end || (result.weights.ok && result.loss.ok));
  const bool ok =
      sums_are_golden(ladder) && golden && claims.all_hold() && reunion.distinct_after == 1;
  context.say("\n{}\n", ok ? "all agree" : "NOT all agree: see the lines above");
  return ok ? exit_ok : exit_failed;
}

}  // namespace

int main(int argc, char** argv) {
  TrainingOptions options;
  return run_program(argc, argv,
                     {"ch02_data_parallel", "data parallelism on the digits",
                      [&](CLI::App& app) { declare(app, options); },
                      [&](Context& context) { return story(context, options); }});
}
