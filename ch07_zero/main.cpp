// ch07: ZeRO on the digits, at any stage.
//
//     mpirun -n 4 build/ch07_zero/ch07_zero --stage 3
//
// Prints the training curve beside the golden model's, and what a step takes at each stage: memory
// at rest and at its peak, bytes and messages, and the bits that the training comes to. Exits with
// 0 only if all of it agrees.
#include "ch07_zero/flags.hpp"
#include "ch07_zero/report.hpp"

using namespace fivecuts;
using namespace fivecuts::zero_redundancy;

namespace {

int story(Context& context, const Options& o) {
  const bool dry = context.device.dry();
  const Setting setting = settled(o, context.size(), dry);
  const data_parallel::TrainingOptions& t = setting.training;
  const Digits digits = load_digits();
  Communicator dp = context.world.split("dp", [](int) { return 0; });
  const ModelShape model = data_parallel::model_of(t);
  context.say(
      "ch07 ZeRO stage {}: {} rank(s) on {} over {}, {} parameters in {} layers, in {}\n"
      "global batch {}, data parallel {}, accumulation {}, rows of a micro-batch {} at most\n\n",
      setting.stage, dp.size(), fivecuts::name_of(context.device.kind()), dp.transport().name(),
      parameter_count(model), model.size(), data_parallel::name_of_precision(t.precision), t.batch,
      dp.size(), t.micro_batches,
      part_of(part_of(t.batch, dp.size(), 0).count, static_cast<int>(t.micro_batches), 0).count);

  bool ok = true;
  TrainingResult result;
  if (dry) {
    context.say(
        "A dry run has no numbers: nothing is trained or compared with golden, and --epochs, "
        "--seed "
        "and\n--learning-rate change nothing\n\n");
  } else {
    ok = training_follows_golden(context, dp, digits, setting, result);
  }
  const std::vector<StageRow> stages = climb(context, dp, digits, setting, result.golden_weights);
  context.say("Every stage: the fullest rank's bytes, what all ranks send in a step{}\n{}\n",
              dry ? "" : ", and the bits of the state after the same training",
              stage_table(stages));
  if (!dry) ok = stages_agree(stages, setting) && ok;
  context.say("{}\n", ok ? "all agree" : "NOT all agree: see the lines above");
  return ok ? exit_ok : exit_failed;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return run_program(argc, argv,
                     {"ch07_zero", "ZeRO: data parallelism whose state is cut in N",
                      [&](CLI::App& app) { declare(app, options); },
                      [&](Context& context) { return story(context, options); }});
}
