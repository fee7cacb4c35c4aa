// ch01: where the memory goes, and what each of the five cuts does about it.
//
//     mpirun -n 4 build/ch01_overview/ch01_overview
//
// Prints the memory account of a model that is really held and of the notes' 7B, counted; the batch
// at which activations outgrow the optimizer state; for each cut, which rank holds which slice; and
// the notes' claims with what was measured. Exits with 0 only if all of it agrees.
#include "ch01_overview/flags.hpp"
#include "common/comm/output.hpp"

using namespace fivecuts;
using namespace fivecuts::overview;

namespace {

void print_account(Context& context, const Options& o) {
  const auto rows = accounts(context, o);
  const int rank = rows.front().rank;
  context.say(
      "The account of rank {} with {} rows, from its ledger; held: really there, dry: counted\n{}",
      rank, batch_rows(o.cut, o.batch, context.size(), rank).count, account_table(o, rows));
  context.say("\n");
}

std::vector<MapRow> show_map(const Context& context, const Options& o) {
  context.say(
      "Activations grow with the batch, model state does not: steps of the whole model, dry\n"
      "{}\n",
      batch_table(growing_batches(o)));
  const auto map = placement_map(o);
  context.say(
      "The placement map: {} ranks, {} layers of {} x {}, bytes from each rank's ledger;\np "
      "parameters, g gradients, o optimizer state; W[rows, columns]; rows of a batch of {}\n{}\n",
      o.parts, o.layers, o.width, o.width, o.batch, map_table(o, map));
  context.say("The five cuts, on the fullest of {} ranks\n{}\n", o.parts, cut_table(o, map));
  return map;
}

bool show_claims(const Context& context, const Options& o) {
  const auto all = load_claims(source_folder() / "docs" / "claims.json");
  ClaimRows claims(all);
  measure_claims(o, claims);
  context.say("Claims of the notes\n{}\nThe other statements of section 01 are shown in\n{}",
              claims.text(context.options.language), elsewhere(all));
  return claims.all_hold();
}

int story(Context& context, const Options& chosen) {
  const Options o = settled(chosen, context);
  const auto figure = output_file(context, o.figure, "figure", "--figure map.svg");
  context.say(
      "ch01 overview: {} rank(s) on {} over {}, {} layers, {} parameters\n"
      "global batch {}, cut {}, recipe {}\n\n",
      context.size(), fivecuts::name_of(context.device.kind()), context.world.transport().name(),
      o.layers, parameter_count(model_of(o)), o.batch, overview::name_of(o.cut), o.recipe.name);

  print_account(context, o);
  const bool ok = !context.world
                       .on_rank_0([&] {
                         const auto map = show_map(context, o);
                         if (figure) figure->write(map_svg(o, map));
                         return show_claims(context, o) ? "ok" : "";
                       })
                       .empty();
  context.say("\n{}\n", ok ? "all agree" : "NOT all agree: see the lines above");
  return ok ? exit_ok : exit_failed;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return run_program(argc, argv,
                     {"ch01_overview", "the memory account and the five cuts",
                      [&](CLI::App& app) { declare(app, options); },
                      [&](Context& context) { return story(context, options); }});
}
