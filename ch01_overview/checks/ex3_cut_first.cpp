#include "ch01_overview/exercise.hpp"

using namespace fivecuts;

namespace {

struct Case {
  const char* what;
  std::int64_t parameter, gradient, optimizer, activation, workspace;  ///< bytes, or the peak
  Category most;
  bool kept = false;  ///< activations and workspace are still there after the step
};

const char* why(Category got, Category largest_live) {
  if (got == largest_live) {
    return "what is gone after the step took memory too: look at the peak of each category";
  }
  if (got == Category::optimizer) return "it is not always the optimizer state";
  return "look at all categories, not only model state";
}

void check_case(ExerciseCheck& check, const Case& c) {
  MemoryLedger ledger;
  ledger.allocate(Category::parameter, c.parameter);
  ledger.allocate(Category::gradient, c.gradient);
  ledger.allocate(Category::optimizer, c.optimizer);
  for (const auto& [category, bytes] : {std::pair{Category::activation, c.activation},
                                        std::pair{Category::workspace, c.workspace}}) {
    ledger.allocate(category, bytes);
    if (!c.kept) ledger.release(category, bytes);
  }
  const Category got = exercise::cut_first(ledger);
  Category largest_live = Category::parameter;
  for (const Category category : all_categories) {
    if (ledger.live(category) > ledger.live(largest_live)) largest_live = category;
  }
  check.holds(got == c.most, fmt::format("{}: got {}, want {}; {}", c.what, name_of(got),
                                         name_of(c.most), why(got, largest_live)));
}

}  // namespace

int main(int argc, char** argv) {
  static constexpr Case cases[] = {
      {"7B with Adam, a small batch", 14, 14, 84, 1, 0, Category::optimizer},
      {"SGD with fp32 gradients", 14, 28, 0, 1, 0, Category::gradient},
      {"weights that are only read", 14, 0, 0, 1, 0, Category::parameter},
      {"a copied bucket that is kept", 14, 14, 0, 1, 15, Category::workspace, true},
      {"7B with Adam, long sequences", 14, 14, 84, 104, 1, Category::activation},
      {"parameters gathered whole, state in 64 parts", 2, 2, 5, 4, 14, Category::workspace}};
  return run_exercise(argc, argv, "ch01_ex3", "the largest category of six ledgers",
                      [](ExerciseCheck& check) {
                        for (const Case& c : cases) check_case(check, c);
                      });
}
