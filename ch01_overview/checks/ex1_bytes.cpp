#include "ch01_overview/exercise.hpp"

using namespace fivecuts;

namespace {

void check_case(ExerciseCheck& check, std::int64_t count, DType parameter, DType gradient) {
  // What there is to count, on a dry device, and what its ledger then says.
  MemoryLedger ledger;
  Device dry(ledger, Device::Kind::meta);
  const Buffer parameters(dry, Category::parameter, 1, count, parameter);
  const Buffer gradients(dry, Category::gradient, 1, count, gradient);
  const AdamState adam(dry, count, parameter);
  const auto of = [&](Category c) { return static_cast<double>(ledger.live(c)); };
  const double p = of(Category::parameter), g = of(Category::gradient), o = of(Category::optimizer);
  const auto n = static_cast<double>(count);

  std::vector<ExerciseCheck::Mistake> mistakes = {
      {{p, g, o + g}, "the gradients are counted twice: they are no optimizer state"},
      {{p, 2 * g, o}, "the gradients are counted twice"},
      {{p, p, o}, "the gradient has a type of its own, which need not be the parameters'"},
      {{p / n, g / n, o / n}, "those are the bytes of one parameter"}};
  if (parameter == DType::f32) {
    mistakes.insert(mistakes.begin(), {{p, g, o + 4 * n}, "f32 parameters need no copy in f32"});
  } else {
    mistakes.push_back({{p, g, o - 4 * n},
                        "the optimizer state has 8 bytes a parameter: the f32 copy of the "
                        "parameters was left out"});
  }
  const exercise::StateBytes got = exercise::state_bytes(count, parameter, gradient);
  check.equal(
      fmt::format("{} parameters in {}, gradients in {} (0 parameter, 1 gradient, 2 "
                  "optimizer)",
                  count, name_of(parameter), name_of(gradient)),
      std::vector<float>{static_cast<float>(got.parameter), static_cast<float>(got.gradient),
                         static_cast<float>(got.optimizer)},
      std::vector<double>{p, g, o}, mistakes);
}

}  // namespace

int main(int argc, char** argv) {
  return run_exercise(argc, argv, "ch01_ex1", "the bytes that the ledger of a dry device counts",
                      [](ExerciseCheck& check) {
                        for (const std::int64_t count : {1LL, 1857LL, 7'000'000'000LL}) {
                          check_case(check, count, DType::bf16, DType::bf16);
                          check_case(check, count, DType::bf16, DType::f32);
                          check_case(check, count, DType::f32, DType::f32);
                        }
                      });
}
