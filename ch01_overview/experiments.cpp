#include "ch01_overview/experiments.hpp"

#include <algorithm>
#include <numeric>

#include "common/support/units.hpp"

namespace fivecuts::overview {
namespace {

constexpr double most_really_held = 2e9;

ModelShape square_layers(std::int64_t layers, std::int64_t width) {
  return mlp_shape(width, width, width, static_cast<int>(layers), false);
}

Placement own_place(const Context& context, const Options& o, const ModelShape& model) {
  return place(o.cut, model, static_cast<int>(o.experts), context.size(), context.rank());
}

/// This rank's rows of the batch, where each rank has the whole model that a step needs; what the
/// step of another cut takes is for that cut's chapter.
std::int64_t step_rows(const Context& context, const Options& o) {
  if (o.cut != Cut::data) return 0;
  return batch_rows(o.cut, o.batch, context.size(), context.rank()).count;
}

AccountRow fullest(const Context& context, AccountRow row) {
  const auto all = context.world.gather(row.account);
  const auto most =
      std::max_element(all.begin(), all.end(),
                       [](const Account& a, const Account& b) { return a.state() < b.state(); });
  row.account = *most;
  row.rank = static_cast<int>(most - all.begin());
  return row;
}

AccountRow really_held(Context& context, const Options& o, const Recipe& recipe) {
  const ModelShape model = cut_model(o.cut, small_of(o), static_cast<int>(o.experts));
  return {o.width / o.scale, !context.device.dry(), recipe,
          hold(context.device, model, own_place(context, o, model), recipe, step_rows(context, o)),
          0};
}

AccountRow counted(Context& context, const Options& o, const Recipe& recipe, std::int64_t cap) {
  const ModelShape model = cut_model(o.cut, model_of(o), static_cast<int>(o.experts));
  return {o.width, false, recipe,
          hold_dry(model, own_place(context, o, model), recipe, step_rows(context, o), cap), 0};
}

/// Refuses a cut over `ranks` ranks that would leave one of them with nothing. `columns`: of each
/// matrix. `fewer`: how to ask for fewer ranks.
void refuse_empty(const Options& o, Cut cut, std::int64_t ranks, std::int64_t columns,
                  const char* fewer) {
  if (cut == Cut::pipeline && o.layers < ranks) {
    throw UsageError(
        fmt::format("{} layers leave some of {} pipeline stages empty; give --layers {}, or {}",
                    o.layers, ranks, ranks, fewer));
  }
  if (cut == Cut::tensor && columns < ranks) {
    throw UsageError(
        fmt::format("matrices of {} columns leave some of {} ranks without one; give --width {}, "
                    "or {}",
                    columns, ranks, o.width / columns * ranks, fewer));
  }
  if (cut == Cut::expert && columns < o.experts) {
    throw UsageError(
        fmt::format("layers of {} columns have none for some of {} experts; give --width {}, or "
                    "fewer --experts",
                    columns, o.experts, o.width / columns * o.experts));
  }
}

/// Experts are shared out whole, as many to each rank: of the map, and of the run if it is cut so.
void settle_experts(Options& o, int ranks) {
  const std::int64_t share = o.cut == Cut::expert ? std::lcm(o.parts, ranks) : o.parts;
  if (o.experts == 0) o.experts = 2 * share;
  if (o.experts % share == 0) return;
  throw UsageError(
      fmt::format("--experts {} cannot be shared out to {} ranks, as many to each; give a multiple "
                  "of {}, as in --experts {}",
                  o.experts, o.experts % o.parts != 0 ? o.parts : ranks, share, 2 * share));
}

}  // namespace

ModelShape model_of(const Options& o) { return square_layers(o.layers, o.width); }
ModelShape small_of(const Options& o) { return square_layers(o.layers, o.width / o.scale); }

Options settled(Options o, const Context& context) {
  if (o.parts == 0) o.parts = context.size() > 1 ? std::min(context.size(), most_parts) : 4;
  settle_experts(o, context.size());
  if (o.width < o.scale) {
    throw UsageError(
        fmt::format("--width {} over --scale {} leaves no column; give --scale {} at "
                    "most",
                    o.width, o.scale, o.width));
  }
  for (const CutFacts& facts : all_cuts()) {
    refuse_empty(o, facts.cut, o.parts, o.width, "fewer --parts");
  }
  refuse_empty(o, o.cut, context.size(), o.width / o.scale, "fewer ranks");
  const auto bytes = static_cast<double>(hold_dry(small_of(o), o.recipe).state());
  if (!context.device.dry() && bytes > most_really_held) {
    throw UsageError(
        fmt::format("--width {} over --scale {} would really take about {} on each rank, and this "
                    "chapter takes "
                    "at most {}; give a larger --scale, or --device meta",
                    o.width, o.scale, show_bytes(bytes), show_bytes(most_really_held)));
  }
  return o;
}

std::vector<AccountRow> accounts(Context& context, const Options& o) {
  std::vector<AccountRow> rows = {fullest(context, really_held(context, o, o.recipe))};
  rows.push_back(fullest(context, counted(context, o, o.recipe, context.options.memory_cap)));
  for (const Recipe& other : all_recipes()) {
    if (other.name == o.recipe.name) continue;
    rows.push_back(fullest(context, counted(context, o, other, MemoryLedger::unlimited)));
  }
  return rows;
}

std::vector<BatchRow> growing_batches(const Options& o) {
  const std::int64_t passing = batch_that_passes(model_of(o), o.recipe);
  std::vector<std::int64_t> batches = {passing - 1, passing};
  for (const std::int64_t factor : {1, 4, 16, 64}) batches.push_back(factor * o.batch);
  std::sort(batches.begin(), batches.end());
  batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
  std::vector<BatchRow> rows;
  for (const std::int64_t batch : batches) {
    if (batch > 0) rows.push_back({batch, hold_dry(model_of(o), o.recipe, batch)});
  }
  return rows;
}

std::vector<MapRow> placement_map(const Options& o) {
  const int ranks = static_cast<int>(o.parts), experts = static_cast<int>(o.experts);
  std::vector<MapRow> map;
  for (const CutFacts& facts : all_cuts()) {
    const ModelShape model = cut_model(facts.cut, model_of(o), experts);
    for (int rank = 0; rank < ranks; ++rank) {
      MapRow row{facts.cut,
                 rank,
                 place(facts.cut, model, experts, ranks, rank),
                 batch_rows(facts.cut, o.batch, ranks, rank),
                 {}};
      row.account = hold_dry(model, row.placement, o.recipe);
      map.push_back(std::move(row));
    }
  }
  return map;
}

}  // namespace fivecuts::overview
