// ch02: data parallelism on the digits.
//
//     mpirun -n 4 build/ch02_data_parallel/ch02_data_parallel
//
// Prints the ladder (what each rung leaves behind and puts on the wire), the training curve beside
// the golden model's, how long a step takes on a virtual cluster, and the notes' claims with what
// was measured. Exits with 0 only if all of it agrees.
#include "ch02_data_parallel/flags.hpp"
#include "ch02_data_parallel/report.hpp"
#include "common/comm/output.hpp"

using namespace fivecuts;
using namespace fivecuts::data_parallel;

namespace {

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
      "ch02 data parallel: {} rank(s) on {} over {}, {} parameters in {} layers{}\n"
      "global batch {}, data parallel {}, accumulation {}, rows of a micro-batch {} at most\n\n",
      dp.size(), fivecuts::name_of(context.device.kind()), dp.transport().name(),
      parameter_count(model), model.size(), o.precision == DType::bf16 ? ", in bf16" : "", o.batch,
      dp.size(), o.micro_batches,
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
        "A dry run has no numbers: nothing is trained or compared with golden, and --epochs, "
        "--seed,\n"
        "--learning-rate, --rung and --overlap change nothing\n\n");
  } else {
    const Reunion reunion = bring_together(context, dp, o);
    context.say(
        "Different starts: {} replicas; after a broadcast from rank 0: {}, {} ranks changed\n\n",
        reunion.distinct_before, reunion.distinct_after, reunion.changed_ranks);
    ok = training_follows_golden(context, dp, digits, o, result) && ok &&
         reunion.distinct_after == 1;
    if (o.precision == DType::bf16) show_standstill(context, dp, digits, o);
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
