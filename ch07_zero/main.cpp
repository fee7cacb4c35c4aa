// ch07: ZeRO on the digits, at any stage.
//
//     mpirun -n 4 build/ch07_zero/ch07_zero --stage 3
//
// Prints the training curve beside the golden model's, what a step takes at each stage (memory at
// rest and at its peak, bytes and messages), the bits that the training comes to and which of them
// are expected to be equal, what is said when a weight is read outside its layer's forward (stage
// 3), the notes' figures 7 and 8, what goes over the wire, what each stage is worth, how long steps
// take on a virtual cluster, what beyond/ makes of it, other tools' rules of memory, and the notes'
// claims with what was measured. Under --memory only the stage asked for is run; if it does not
// fit, that ends the run. Exits with 0 only if all of it agrees.
#include "ch07_zero/flags.hpp"
#include "ch07_zero/report.hpp"
#include "common/comm/output.hpp"

using namespace fivecuts;
using namespace fivecuts::zero_redundancy;

namespace {

/// What rank 0 finds out alone, in dry worlds inside the run. The others hear whether it agreed.
bool show_worlds(Context& context, const Setting& setting, const Digits& digits,
                 const std::optional<OutputFile>& figure, const std::optional<OutputFile>& plot) {
  bool agree = true;
  context.world.on_rank_0([&] {
    agree = show_what_leaks(context, setting.stage);
    const Figure7 seven = figure7(step_of_figure7(context, setting));
    context.say(
        "Figure 7: what a rank holds over a step at stage {}; 3 layers of 10,000 x 10,000 in bf16, "
        "{} ranks\nwith 4,096 rows each, dry, on '{}'\n{}\n",
        seven.stage, seven.ranks, context.clock.cluster().name, figure7_text(seven));
    const Figure8 eight = figure8();
    context.say(
        "Figure 8: GB of model state on the fullest rank, 7B in bf16, by the ledger; and the N "
        "from which a "
        "card holds\nit at rest, and a step of one row too\n{}\n",
        figure8_text(eight));
    show_worlds_of(context, setting);
    agree = show_beyond(context, digits) && agree;
    ClaimRows claims(load_claims(source_folder() / "docs" / "claims.json"));
    measure_claims(context, digits, eight, claims);
    context.say("Claims of the notes\n{}", claims.text(context.options.language));
    if (figure) figure->write(figure7_svg(seven));
    if (plot) plot->write(figure8_svg(eight));
    agree = claims.all_hold() && agree;
    return std::string();
  });
  return context.world.all_true(agree);
}

int story(Context& context, const Options& o) {
  const bool dry = context.device.dry();
  const Setting setting = settled(o, context.size(), dry);
  const data_parallel::TrainingOptions& t = setting.training;
  refuse_clashes(context, o.files);
  const auto figure = output_file(context, o.files.figure, "figure", "--figure step.svg");
  const auto plot = output_file(context, o.files.plot, "plot", "--plot state.svg");
  const Digits digits = load_digits();
  TrainingFiles files = o.files;
  const FolderLock saving = check_files(context, digits, setting, files);
  Communicator dp = context.world.split("dp", [](int) { return 0; });
  const ModelShape model = setting.model();
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
    ok = training_follows_golden(context, dp, digits, setting, files, result);
  }
  const std::vector<StageRow> stages = climb(context, dp, digits, setting, result.golden_weights);
  context.say("{}: the fullest rank's bytes, what all ranks send in a step{}\n{}{}\n",
              stages.size() == 1 ? "The stage alone, under --memory" : "Every stage",
              dry ? "" : ", and the bits of the state after the same training", stage_table(stages),
              dry || stages.size() == 1 ? "" : states_text(setting));
  const auto trained = result.resumed == 0 ? std::optional(result.hash) : std::nullopt;
  if (!dry) ok = stages_agree(stages, setting, trained) && ok;
  ok = show_worlds(context, setting, digits, figure, plot) && ok;
  context.say("\n{}\n", ok ? "all agree" : "NOT all agree: see the lines above");
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
