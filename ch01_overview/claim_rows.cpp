// Each claim of the notes whose home is this chapter: the formula against what the ledger of a rank
// says that holds what the cut names.
#include <algorithm>
#include <set>

#include "ch01_overview/experiments.hpp"
#include "common/model/random.hpp"
#include "common/support/units.hpp"

namespace fivecuts::overview {
namespace {

/// What the notes speak of: 7B in the recipe of 16 bytes.
struct Scene {
  const Options& options;
  ClaimRows& rows;
  ModelShape seven_b = mlp_shape(10000, 10000, 10000, 70, false);
  Recipe recipe = all_recipes().front();
  int parts = 4;  ///< ranks of a cut: the run's, if that is a cut at all

  Account dry(const Placement& placement) const { return hold_dry(seven_b, placement, recipe); }
  double psi() const { return static_cast<double>(parameter_count(seven_b)); }
};

double as_double(std::int64_t value) { return static_cast<double>(value); }
std::string gb(std::int64_t bytes) { return show_bytes(as_double(bytes)); }

/// How many matrices of `model` stand in the placements of exactly `ranks` ranks, and in none of
/// them as anything but `whole` says: all of the matrix, or less.
int matrices(const Scene& s, Cut cut, int ranks, bool whole) {
  std::vector<int> holders(s.seven_b.size()), other(s.seven_b.size());
  for (int r = 0; r < s.parts; ++r) {
    for (const Holding& h : place(cut, s.seven_b, 0, s.parts, r)) {
      const std::int64_t here = layer_of(s.seven_b, h).parameters();
      holders[h.layer] += here > 0 ? 1 : 0;
      other[h.layer] += (here == s.seven_b[h.layer].parameters()) == whole ? 0 : 1;
    }
  }
  int count = 0;
  for (std::size_t k = 0; k < holders.size(); ++k) {
    count += holders[k] == ranks && other[k] == 0 ? 1 : 0;
  }
  return count;
}

// Each stage keeps a contiguous run of layers and so a P-th of the state, as evenly as layers
// allow.
void stages(const Scene& s) {
  std::int64_t sum = 0, most = 0, least = INT64_MAX;
  bool contiguous = true;
  for (int r = 0; r < s.parts; ++r) {
    const Placement placement = pipeline_parallel(s.seven_b, s.parts, r);
    contiguous = contiguous && !placement.empty() &&
                 placement.back().layer - placement.front().layer + 1 == placement.size();
    const std::int64_t bytes = s.dry(placement).state();
    sum += bytes;
    most = std::max(most, bytes);
    least = std::min(least, bytes);
  }
  const bool fewer = most < s.dry(data_parallel(s.seven_b, 1, 0)).state();
  s.rows.equal("C01.2", 16 * s.psi() / s.parts / 1e9, as_double(sum) / s.parts / 1e9,
               "GB of model state a card, on average",
               fmt::format("{} stages of {} to {}", s.parts, gb(least), gb(most)),
               contiguous && fewer && matrices(s, Cut::pipeline, 1, true) == 70);
}

// Between layers: each matrix is whole and on one rank. Inside a layer: it is on every rank, a
// slice each.
void directions(const Scene& s) {
  const int between = matrices(s, Cut::pipeline, 1, true);
  const int inside = matrices(s, Cut::tensor, s.parts, false);
  const Holding slice = tensor_parallel(s.seven_b, s.parts, 0).front();
  s.rows.holds("C01.3", between == 70 && inside == 70,
               fmt::format("{} ranks: with pipeline {} of 70 matrices are whole and on one rank "
                           "(cut between layers); with tensor {} are on every rank, a slice each "
                           "(cut inside a layer): {} x {} of the first on rank 0",
                           s.parts, between, inside, slice.rows.count, slice.cols.count));
}

/// The columns of a 16 x 16 matrix on 4 ranks, filled by each rank alone and put side by side.
bool slices_are_the_matrix() {
  MemoryLedger ledger;
  Device cpu(ledger);
  const ModelShape model = mlp_shape(16, 16, 16, 1, false);
  const Buffer whole(cpu, Category::parameter, 16, 16);
  const Buffer together(cpu, Category::parameter, 16, 16);
  initialise(model[0], whole, 1, 0);
  fill_uniform(together, 2, 0, 1.0f);
  for (int r = 0; r < 4; ++r) {
    const Holding h = tensor_parallel(model, 4, r).front();
    const Buffer slice(cpu, Category::parameter, h.rows.count, h.cols.count);
    for (std::int64_t row = 0; row < 16; ++row) {
      copy(whole.tensor().part(16 * row + h.cols.first, h.cols.count),
           slice.tensor().part(row * h.cols.count, h.cols.count));
    }
    for (std::int64_t row = 0; row < 16; ++row) {
      copy(slice.tensor().part(row * h.cols.count, h.cols.count),
           together.tensor().part(16 * row + h.cols.first, h.cols.count));
    }
  }
  return hash(whole) == hash(together);
}

// A quarter of one matrix's columns on each of four cards.
void columns(const Scene& s) {
  const ModelShape one = mlp_shape(10000, 10000, 10000, 1, false);
  std::int64_t least = INT64_MAX, most = 0;
  for (int r = 0; r < 4; ++r) {
    const std::int64_t bytes = hold_dry(one, tensor_parallel(one, 4, r), s.recipe).parameter;
    least = std::min(least, bytes);
    most = std::max(most, bytes);
  }
  const bool same = slices_are_the_matrix();
  s.rows.equal("C01.5", 2 * 1e8 / 4, as_double(most), "B of a 10000 x 10000 matrix on each of 4",
               fmt::format("slices of a 16 x 16 one side by side are {}",
                           same ? "it, bit for bit" : "another one"),
               same && least == most);
}

// Four experts on two cards.
void experts(const Scene& s) {
  const ModelShape moe = moe_of(mlp_shape(10000, 10000, 10000, 1, false), 4);
  std::string seen;
  std::set<std::size_t> distinct;
  std::size_t most = 0;
  for (int r = 0; r < 2; ++r) {
    std::size_t here = 0;
    std::string numbers;
    for (const Holding& h : expert_parallel(moe, 4, 2, r)) {
      if (h.layer == 0) continue;  // the router
      ++here;
      distinct.insert(h.layer);
      numbers += fmt::format(" {}", h.layer);
    }
    most = std::max(most, here);
    seen += fmt::format("{}GPU {}: experts{}", r == 0 ? "" : ", ", r, numbers);
  }
  s.rows.equal("C01.8", 4 / 2, as_double(static_cast<std::int64_t>(most)), "experts a card", seen,
               distinct.size() == 4);
}

// Who holds fewer parameters than there are.
void who_cuts_the_model(const Scene& s) {
  int cuts = 0;
  std::string seen;
  for (const Cut cut : {Cut::pipeline, Cut::tensor, Cut::expert, Cut::data}) {
    const int n_experts = 2 * s.parts;
    const ModelShape model = cut_model(cut, s.seven_b, n_experts);
    std::int64_t most = 0;
    for (int r = 0; r < s.parts; ++r) {
      most = std::max(
          most, hold_dry(model, place(cut, model, n_experts, s.parts, r), s.recipe).parameter);
    }
    const double share = as_double(most) / as_double(hold_dry(model, s.recipe).parameter);
    cuts += share < 1 ? 1 : 0;
    seen += fmt::format("{}{} {:.3g}", seen.empty() ? "share of the parameters on a rank: " : ", ",
                        name_of(cut), share);
  }
  s.rows.equal("C01.12", 3, cuts, "of these four cut the model", seen);
}

// The cards of section 01, and the sum.
void cards(const Scene& s) {
  const Account a = s.dry(data_parallel(s.seven_b, 1, 0));
  const Account wide = hold_dry(s.seven_b, all_recipes()[1]);
  s.rows.equal("C01.20", 2 * s.psi() / 1e9, as_double(a.parameter) / 1e9, "GB",
               fmt::format("{:.4g} GiB", as_double(a.parameter) / (1 << 30)));
  s.rows.equal("C01.21", 2 * s.psi() / 1e9, as_double(a.gradient) / 1e9, "GB",
               "in fp32 " + gb(wide.gradient));
  s.rows.equal("C01.22", 12 * s.psi() / 1e9, as_double(a.optimizer) / 1e9, "GB");
  s.rows.equal("C01.23", 16 * s.psi() / 1e9, as_double(a.state()) / 1e9, "GB",
               fmt::format("{:.4g} GiB", as_double(a.state()) / (1 << 30)));
  const Account eighth = s.dry(zero_sharding(1, s.seven_b, 8, 0));
  s.rows.equal("C01.26", 0.75, as_double(a.optimizer) / as_double(a.state()), "of the model state",
               fmt::format("under ZeRO-1 with N = 8: {:.2g}",
                           as_double(eighth.optimizer) / as_double(eighth.state())));
}

// One parameter, buffer by buffer; then the other conventions.
void one_parameter(const Scene& s) {
  const auto buffers = [](const Recipe& recipe) {
    MemoryLedger ledger;
    Device device(ledger);  // a real one
    const ModelState one(device, data_parallel(mlp_shape(1, 1, 1, 1, false), 1, 0), recipe);
    const AdamState& adam = one.optimizer[0];
    return std::vector<std::int64_t>{
        one.parameters[0].tensor().bytes(), one.gradients[0].tensor().bytes(),
        adam.master.tensor().bytes(), adam.m.tensor().bytes(), adam.v.tensor().bytes()};
  };
  const auto sum = [](const std::vector<std::int64_t>& all) {
    std::int64_t total = 0;
    for (const std::int64_t bytes : all) total += bytes;
    return total;
  };
  std::string others;
  for (const Recipe& recipe : all_recipes().subspan(1)) {
    others += fmt::format(", {} {}", recipe.name, sum(buffers(recipe)));
  }
  const auto mixed = buffers(s.recipe);
  s.rows.equal("C01.24", 16, as_double(sum(mixed)), "B a parameter",
               fmt::format("{}{}", fmt::join(mixed, " + "), others),
               mixed == std::vector<std::int64_t>{2, 2, 4, 4, 4});
}

// A card of 80 GB refuses it; half of the optimizer state less, and it fits.
void does_not_fit(const Scene& s) {
  constexpr std::int64_t card = 80'000'000'000;
  std::string refusal;
  try {
    hold_dry(s.seven_b, data_parallel(s.seven_b, 1, 0), s.recipe, 0, card);
  } catch (const OutOfMemory& error) {
    refusal = error.what();
  }
  std::int64_t half = 0;
  try {
    half = hold_dry(s.seven_b, zero_sharding(1, s.seven_b, 2, 0), s.recipe, 0, card).state();
  } catch (const OutOfMemory&) {
  }
  s.rows.holds("C01.25", !refusal.empty() && half > 0,
               fmt::format("{}; with ZeRO-1 on 2 ranks {}", refusal.empty() ? "it fits" : refusal,
                           half > 0 ? gb(half) + " fit" : "it does not fit either"));
}

// Activations pass the optimizer state at some batch, and nothing else has changed.
void activations(const Scene& s) {
  const std::int64_t rows = batch_that_passes(s.seven_b, s.recipe);
  const Account before = hold_dry(s.seven_b, s.recipe, rows - 1);
  const Account there = hold_dry(s.seven_b, s.recipe, rows);
  const bool passes = before.activation <= before.optimizer && there.activation > there.optimizer;
  s.rows.holds(
      "C01.27", passes && before.state() == there.state(),
      fmt::format("this chapter's 7B keeps two numbers a column: its activations pass {} of "
                  "optimizer state at {} rows (8 sequences of 4096 are {}), with {} of model state "
                  "before and after; a transformer keeps more a token (the 104 GB are arithmetic, "
                  "not this run's)",
                  gb(there.optimizer), rows, 8 * 4096, gb(there.state())));
}

}  // namespace

void measure_claims(const Options& options, ClaimRows& rows) {
  Scene scene{options, rows};
  if (options.parts > 1) scene.parts = static_cast<int>(options.parts);
  stages(scene);
  directions(scene);
  columns(scene);
  experts(scene);
  who_cuts_the_model(scene);
  cards(scene);
  one_parameter(scene);
  does_not_fit(scene);
  activations(scene);
}

}  // namespace fivecuts::overview
