// ch02: data parallelism on the digits.
//
//     mpirun -n 4 build/ch02_data_parallel/ch02_data_parallel
//
// Prints the ladder (what each rung leaves behind and puts on the wire), the training curve beside
// the golden model's, how long a step takes on a virtual cluster, and the notes' claims with what was
// measured. Exits with 0 only if all of it agrees.
#include "ch02_data_parallel/flags.hpp"
#include "ch02_data_parallel/report.hpp"
#include "common/comm/output.hpp"
#include "common/observe/gantt.hpp"
#include "common/observe/trace.hpp"

using namespace fivecuts;
using namespace fivecuts::data_parallel;

namespace {

/// Trains, and says whether the weights and losses followed golden's.
bool training_follows_golden(Context& context, Communicator& dp, const Digits& digits,
                             const Options& o, TrainingResult& result) {
  context.say("Training on {} digits, {} held out{}\n  epoch  loss     golden   accuracy  golden\n",
              digits.train.count(), digits.test.count(),
              o.overlap ? ", reductions overlapped" : "");
  result = train(context, dp, digits, o, library_all_reduce, [&](std::size_t n, const Epoch& e) {
    context.say("  {:5}  {:.4f}   {:.4f}   {:6.2f} %  {:6.2f} %\n", n, e.loss, e.golden_loss,
                100 * e.accuracy, 100 * e.golden_accuracy);
  });
  context.say("golden, after {} steps: {}\n", std::min(result.steps, early_steps),
              result.early.text);
  if (!follows_to_the_end(o)) {
    context.say(
        "golden, at the end: not judged, since with these options rounding grows too far\n\n");
    return result.early.ok;
  }
  context.say("golden, at the end: {}\ngolden, all epochs: {}\n\n", result.weights.text,
              result.loss.text);
  return result.early.ok && result.weights.ok && result.loss.ok;
}

void show_times(const Context& context, const Times& times, const std::optional<OutputFile>& figure,
                const std::optional<OutputFile>& trace) {
  const std::string& cluster = context.clock.cluster().name;
  context.say(
      "A step on the virtual cluster '{}': {} parameters, {} rows a rank, dry. Weak scaling: the "
      "time\n"
      "of one rank over that of many\n{}\n",
      cluster, parameter_count(times.model.shape), times.model.rows, scaling_table(times));
  if (context.rank() != 0) return;
  const auto panels = times.timelines();
  for (const Timeline& panel : panels) {
    const bool shown =
        panel.title.starts_with("per_layer") || panel.title.starts_with("overlapped");
    if (shown) context.say("{}\n", gantt(panel));
  }
  if (figure) figure->write(data_parallel::figure(times, cluster));
  if (trace) trace->write(chrome_trace(panels));
}

int story(Context& context, const Options& o) {
  const bool dry = context.device.dry();
  refuse_impossible(o, context.size(), dry);
  const auto figure = output_file(context, o.figure, "figure", "--figure timeline.svg");
  const auto trace = output_file(context, o.trace, "trace", "--trace trace.json");
  const Digits digits = load_digits();
  ClaimRows claims(load_claims(source_folder() / "docs" / "claims.json"));
  Communicator dp = context.world.split("dp", [](int) { return 0; });
  const ModelShape model = model_of(o);
  context.say(
      "ch02 data parallel: {} rank(s) on {} over {}, {} parameters in {} layers\n"
      "global batch {}, data parallel {}, accumulation {}, rows of a micro-batch {} at most\n\n",
      dp.size(), fivecuts::name_of(context.device.kind()), dp.transport().name(),
      parameter_count(model), model.size(), o.batch, dp.size(), o.micro_batches,
      part_of(part_of(o.batch, dp.size(), 0).count, static_cast<int>(o.micro_batches), 0).count);

  const std::vector<RungRow> ladder = climb(context, dp, digits, o, library_all_reduce);
  context.say(
      "The ladder: 3 steps each from one start. Different replicas at the end; all-reduces and "
      "bytes a step\n{}\n",
      ladder_table(ladder));
  bool ok = sums_are_golden(ladder);
  TrainingResult result;
  if (dry) {
    context.say(
        "A dry run has no numbers: nothing is trained, and nothing compared with golden\n\n");
  } else {
    const Reunion reunion = bring_together(context, dp, o);
    context.say(
        "Different starts: {} replicas; after a broadcast from rank 0: {}, {} ranks changed\n\n",
        reunion.distinct_before, reunion.distinct_after, reunion.changed_ranks);
    ok = training_follows_golden(context, dp, digits, o, result) && ok &&
         reunion.distinct_after == 1;
  }
  show_times(context, time_steps(context, o, library_all_reduce), figure, trace);
  measure_claims(context, dp, digits, o, library_all_reduce, result, claims);
  context.say("Claims of the notes\n{}", claims.text(context.options.language));
  ok = ok && claims.all_hold();
  context.say("\n{}\n", ok ? "all agree" : "NOT all agree: see the lines above");
  return ok ? exit_ok : exit_failed;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return run_program(argc, argv,
                     {"ch02_data_parallel", "data parallelism on the digits",
                      [&](CLI::App& app) { declare(app, options); },
                      [&](Context& context) { return story(context, options); }});
}
