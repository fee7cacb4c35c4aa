#include "ch01_overview/exercise.hpp"

using namespace fivecuts;
using exercise::Block;
using exercise::Card;
using exercise::Cut;

namespace {

constexpr std::int64_t width = 12;
constexpr int experts_each = 2;

const char* name_of(Cut cut) {
  static constexpr const char* names[] = {"data", "pipeline", "tensor", "expert", "zero"};
  return names[static_cast<std::size_t>(cut)];
}

ModelShape square_layers(std::int64_t layers) {
  return ModelShape(static_cast<std::size_t>(layers), {width, width, false, false, false});
}

/// Two mixtures: a router and its experts, twice.
ModelShape mixture(int experts) {
  ModelShape model;
  for (int block = 0; block < 2; ++block) {
    model.push_back({width, experts, false, false, false});
    for (int e = 0; e < experts; ++e) model.push_back({width, width, false, false, false});
  }
  return model;
}

Card hold(Cut cut, const ModelShape& model, int cards, int card) {
  Card held;
  const Part stage = part_of(static_cast<std::int64_t>(model.size()), cards, card);
  for (std::size_t k = 0; k < model.size(); ++k) {
    Block block{k, {0, model[k].in}, {0, model[k].out}, {0, model[k].parameters()}};
    const auto number = static_cast<std::int64_t>(k);
    const std::int64_t expert = number % (experts_each * cards + 1) - 1;
    if (cut == Cut::pipeline && (number < stage.first || number >= stage.first + stage.count)) {
      continue;
    }
    if (cut == Cut::expert && expert >= 0 && expert / experts_each != card) continue;
    if (cut == Cut::tensor) {
      (k % 2 == 0 ? block.cols : block.rows) = part_of(width, cards, card);
      block.optimizer.count = block.rows.count * block.cols.count;
    }
    if (cut == Cut::zero) block.optimizer = part_of(block.optimizer.count, cards, card);
    held.push_back(block);
  }
  return held;
}

/// What is to be said to one who takes `cut` for `got`.
const char* why(Cut cut, Cut got) {
  const bool between = cut == Cut::pipeline || cut == Cut::tensor;
  if (between && got != cut &&
      (got == Cut::pipeline || (cut == Cut::pipeline && got == Cut::tensor)))
    return cut == Cut::tensor
               ? "each card holds a slice of every layer; do not trust words of direction, the "
                 "notes use them both ways"
               : "each card holds whole matrices of some layers: no layer is cut inside";
  if (cut == Cut::expert && got == Cut::pipeline) return "the router is on every card";
  if (cut == Cut::zero && got == Cut::data) {
    return "every card has all parameters, but optimizer state is kept only in part";
  }
  if (got == Cut::tensor) return "the cards hold whole matrices: no layer is cut inside";
  return "compare what the cards hold of one layer, then of all";
}

void check_case(ExerciseCheck& check, Cut cut, int cards) {
  const ModelShape model =
      cut == Cut::expert ? mixture(experts_each * cards) : square_layers(2 * cards + 1);
  std::vector<Card> map;
  for (int card = 0; card < cards; ++card) map.push_back(hold(cut, model, cards, card));
  const Cut got = exercise::name_the_cut(model, map);
  check.holds(got == cut, fmt::format("the map of the {} cut over {} cards was called {}: {}",
                                      name_of(cut), cards, name_of(got), why(cut, got)));
}

}  // namespace

int main(int argc, char** argv) {
  return run_exercise(
      argc, argv, "ch01_ex2", "all five cuts named, over 2, 3 and 4 cards",
      [](ExerciseCheck& check) {
        for (const int cards : {2, 3, 4}) {
          for (const Cut cut : {Cut::data, Cut::tensor, Cut::pipeline, Cut::expert, Cut::zero}) {
            check_case(check, cut, cards);
          }
        }
      });
}
