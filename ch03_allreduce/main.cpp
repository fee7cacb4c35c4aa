// ch03: all-reduce, from "everyone to rank 0" to the ring and beyond.
//
//     mpirun -n 4 build/ch03_allreduce/ch03_allreduce
//
// Prints the notes' figure 3 from a run, what each algorithm puts on the wire of each rank, how
// long it takes on a virtual cluster, which sums have the same bits, and the notes' claims with
// what was measured. Exits with 0 only if all of it agrees. With --demo it shows a mistake instead.
#include "ch03_allreduce/flags.hpp"
#include "ch03_allreduce/report.hpp"
#include "common/comm/output.hpp"

using namespace fivecuts;
using namespace fivecuts::all_reduce;

namespace {

bool show_numbers(Context& context, Communicator& dp, const Options& o) {
  const std::vector<LadderRow> ladder = climb(context, dp, o);
  context.say("The {} over {} ranks, against one in double precision; bytes on the wire\n{}",
              all_reduce::name_of(o.result), dp.size(), ladder_table(ladder));
  for (const LadderRow& row : ladder) {
    if (!row.result.ok) context.say("{}\n", row.result.text);
  }
  if (context.device.dry()) {
    context.say("A dry run has no numbers to compare: --result changes nothing\n\n");
    return ladder_holds(ladder);
  }
  const Reproducibility found = reproduce(context, dp, o);
  context.say("\n{}\n", reproducibility_text(found, dp.size()));
  return ladder_holds(ladder) && is_reproducible(found);
}

/// What rank 0 finds out alone, in worlds inside the run. The others hear whether it agreed.
bool show_worlds(Context& context, const Options& o, const RingRun& own,
                 const std::optional<OutputFile>& figure, const std::optional<OutputFile>& plot) {
  bool agree = true;
  context.world.on_rank_0([&] {
    const RingRun four = figure_of_four(context, own);
    context.say("{}\n", figure_text(own, four));
    const std::vector<WireRow> wire = wire_of_worlds(context, o);
    context.say(
        "On the wire in units of the tensor ({} bytes): of the root, of another rank at most, of "
        "all;\nhierarchical on nodes of {}\n{}\n",
        o.elements * size_of(o.type), o.ranks_per_node > 0 ? o.ranks_per_node : 4,
        wire_table(wire, o));
    const Times times = time_all(context);
    context.say("{}\n", times_text(times, context));
    ClaimRows claims(load_claims(source_folder() / "docs" / "claims.json"));
    measure_claims(context, o, four, claims);
    context.say("{}\n{}", claims_title(context), claims.text(context.options.language));
    if (figure) figure->write(figure3_svg(own));
    if (plot) {
      plot->write(times_svg(times.sweeps, "All-reduce on " + context.clock.cluster().name));
    }
    agree = claims.all_hold() && times.by_formula() && own.one_each() &&
            std::ranges::all_of(wire, [](const WireRow& row) { return row.by_formula; });
    return std::string();
  });
  return context.world.all_true(agree);
}

int story(Context& context, const Options& o) {
  refuse_impossible(o, context);
  if (o.demo != nullptr) return show(*o.demo, context, o.elements) ? exit_ok : exit_failed;
  const auto figure = output_file(context, o.figure, "figure", "--figure ring.svg");
  const auto plot = output_file(context, o.plot, "plot", "--plot times.svg");
  Communicator dp = context.world.split("dp", [](int) { return 0; });
  context.say("ch03 all-reduce: {} rank(s) on {} over {}, {} x {} on each\n\n", dp.size(),
              fivecuts::name_of(context.device.kind()), dp.transport().name(), o.elements,
              name_of_type(o.type));
  bool ok = show_numbers(context, dp, o);
  const RingRun own = figure_of(context, dp);
  ok = show_worlds(context, o, own, figure, plot) && ok;
  context.say("\n{}\n", ok ? "all agree" : "NOT all agree: see the lines above");
  return ok ? exit_ok : exit_failed;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return run_program(argc, argv,
                     {"ch03_allreduce", "all-reduce, with every byte counted",
                      [&](CLI::App& app) { declare(app, options); },
                      [&](Context& context) { return story(context, options); }});
}
