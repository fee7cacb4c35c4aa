#include <algorithm>
#include <map>

#include "ch01_overview/experiments.hpp"
#include "common/observe/table.hpp"
#include "common/support/units.hpp"

namespace fivecuts::overview {
namespace {

std::string bytes(std::int64_t count) { return show_bytes(static_cast<double>(count)); }

double ratio(std::int64_t part, std::int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

std::string range(Part part) {
  if (part.count == 0) return "none";
  if (part.count == 1) return std::to_string(part.first);
  return fmt::format("{}..{}", part.first, part.first + part.count - 1);
}

std::string range(Part part, std::int64_t all) { return part.count == all ? ":" : range(part); }

/// "W[:, 0..2499], W[0..2499, :]": the blocks of the first layers, as long as they are other ones.
std::string blocks(const Placement& placement, const ModelShape& model) {
  std::string text;
  for (const Holding& h : placement) {
    const std::string rows = range(h.rows, model[h.layer].in);
    const std::string cols = range(h.cols, model[h.layer].out);
    const std::string block = rows == ":" && cols == ":" ? "all" : "W[" + rows + ", " + cols + "]";
    if (text.find(block) != std::string::npos) break;
    text += (text.empty() ? "" : ", ") + block;
  }
  return text;
}

/// "p g whole, o 0..24999999": the kinds of state that are whole, then those of which a rank has
/// the named elements of each bucket.
std::string flat_parts(const Placement& placement, const ModelShape& model) {
  const Holding& h = placement.front();
  const std::int64_t all = layer_of(model, h).parameters();
  std::vector<std::string> whole, cut;
  for (const auto& [part, kind] :
       {std::pair{h.parameters, "p"}, {h.gradients, "g"}, {h.optimizer, "o"}}) {
    (part.count == all ? whole : cut).emplace_back(kind);
  }
  if (cut.empty()) return "all";
  return fmt::format("{}{}{} {}", fmt::join(whole, " "), whole.empty() ? "" : " whole, ",
                     fmt::join(cut, " "), range(h.optimizer));
}

std::string holds(const Options& o, const MapRow& row, const ModelShape& model) {
  if (row.placement.empty()) return "nothing";
  if (row.cut == Cut::expert) {
    const Part mine = part_of(o.experts, static_cast<int>(o.parts), row.rank);
    return "router, experts " + range(mine);
  }
  const bool flat = row.cut == Cut::zero1 || row.cut == Cut::zero2 || row.cut == Cut::zero3;
  return flat ? flat_parts(row.placement, model) : blocks(row.placement, model);
}

/// Numbers of the first and the last layer; a mixture of experts is one.
std::string layers(const Options& o, const MapRow& row) {
  if (row.placement.empty()) return "none";
  const std::int64_t of_one = row.cut == Cut::expert ? o.experts + 1 : 1;
  const auto first = static_cast<std::int64_t>(row.placement.front().layer) / of_one;
  const auto last = static_cast<std::int64_t>(row.placement.back().layer) / of_one;
  return range({first, last - first + 1});
}

}  // namespace

std::string account_table(const Options& o, const std::vector<AccountRow>& rows) {
  Table table({"layers of", "", "recipe", "parameter", "gradient", "optimizer", "model state",
               "a parameter", "activations"});
  const auto whole = [&](std::int64_t width) { return o.layers * width * width; };
  for (const auto& [width, allocated, recipe, a, rank] : rows) {
    table.row({fmt::format("{} x {}", width, width), allocated ? "held" : "dry", recipe.name,
               bytes(a.parameter), bytes(a.gradient), bytes(a.optimizer), bytes(a.state()),
               fmt::format("{:.4g} B", ratio(a.state(), whole(width))),
               a.activation > 0 ? bytes(a.activation) : "-"});
  }
  const Account& first = rows.front().account;
  return table.text() + fmt::format(
                            "  of {}: parameter {:.3g} %, gradient {:.3g} %, optimizer "
                            "state {:.3g} %\n",
                            bytes(first.state()), 100 * ratio(first.parameter, first.state()),
                            100 * ratio(first.gradient, first.state()),
                            100 * ratio(first.optimizer, first.state()));
}

std::string batch_table(const std::vector<BatchRow>& rows) {
  Table table({"rows", "model state", "optimizer state", "activations", "the larger of the two"});
  for (const auto& [batch, a] : rows) {
    table.row({std::to_string(batch), bytes(a.state()), bytes(a.optimizer), bytes(a.activation),
               a.activation > a.optimizer ? "activations" : "optimizer state"});
  }
  return table.text();
}

std::string map_table(const Options& o, const std::vector<MapRow>& map) {
  Table table({"cut", "rank", "layers", "of each", "rows", "model state"});
  for (const MapRow& row : map) {
    const ModelShape model = cut_model(row.cut, model_of(o), static_cast<int>(o.experts));
    table.row({row.rank == 0 ? name_of(row.cut) : "", std::to_string(row.rank), layers(o, row),
               holds(o, row, model), range(row.rows), bytes(row.account.state())});
  }
  return table.text();
}

std::string cut_table(const Options& o, const std::vector<MapRow>& map) {
  Table table({"cut", "what is cut", "a rank holds", "frees", "costs", "shown in"});
  const std::int64_t whole = hold_dry(model_of(o), o.recipe).state();
  for (const auto& [cut, name, what, price, shown_in] : all_cuts()) {
    std::int64_t most = 0;
    for (const MapRow& row : map) {
      if (row.cut == cut) most = std::max(most, row.account.state());
    }
    table.row({name, what, bytes(most), bytes(whole - most), price, shown_in});
  }
  return table.text();
}

std::string elsewhere(const std::vector<Claim>& claims) {
  std::map<std::string, std::string> homes;
  for (const Claim& claim : claims) {
    if (claim.chapter != "ch01" || claim.shown_in == "ch01") continue;
    std::string& ids = homes[claim.shown_in];
    ids += (ids.empty() ? "" : ", ") + claim.id;
  }
  std::string text;
  for (const auto& [home, ids] : homes) {
    text += fmt::format("  {}: {}\n", home == "doc" ? "docs/claims.md" : home, ids);
  }
  return text;
}

}  // namespace fivecuts::overview
