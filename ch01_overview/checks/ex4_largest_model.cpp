#include <cmath>
#include <cstring>
#include <memory>

#include "ch01_overview/exercise.hpp"
#include "common/support/units.hpp"

using namespace fivecuts;

namespace {

/// One layer with all that it keeps.
struct Layer {
  Layer(Device& device, const LayerShape& shape, DType p, DType g, std::int64_t rows)
      : parameters(device, Category::parameter, 1, shape.parameters(), p),
        gradients(device, Category::gradient, 1, shape.parameters(), g),
        adam(device, shape.parameters(), p),
        saved(device, shape, rows, p) {}
  Buffer parameters, gradients;
  AdamState adam;
  Saved saved;
};

/// How many layers a dry card takes before one does not fit.
std::int64_t fill(std::int64_t card, const LayerShape& shape, DType p, DType g, std::int64_t rows) {
  MemoryLedger ledger(card);
  Device dry(ledger, Device::Kind::meta);
  std::vector<std::unique_ptr<Layer>> layers;
  try {
    while (true) layers.push_back(std::make_unique<Layer>(dry, shape, p, g, rows));
  } catch (const OutOfMemory&) {
    return static_cast<std::int64_t>(layers.size());
  }
}

void check_case(ExerciseCheck& check, const char* card, std::int64_t width, DType p, DType g,
                std::int64_t rows) {
  const LayerShape shape{width, width, false, true, false};
  const std::int64_t bytes = parse_bytes(card), want = fill(bytes, shape, p, g, rows);
  const double unit = std::strstr(card, "GiB") != nullptr ? 1e9 / (1 << 30) : 1;
  const auto decimal = static_cast<std::int64_t>(std::llround(static_cast<double>(bytes) * unit));
  const auto state = static_cast<double>(width * width);
  const double a_layer =
      state * static_cast<double>(size_of(p) + size_of(g) + 8 + (p == DType::f32 ? 0 : 4)) +
      static_cast<double>(2 * rows * width * size_of(p));
  const auto with = [&](double layer) {
    return std::vector{std::floor(static_cast<double>(bytes) / layer)};
  };
  const ExerciseCheck::Mistake mistakes[] = {
      {{static_cast<double>(fill(decimal, shape, p, g, rows))}, "GiB was taken for GB"},
      {with(a_layer - 4 * state), "Adam's f32 copy of the parameters was left out"},
      {{static_cast<double>(fill(bytes, shape, p, g, 0))}, "the activations were left out"},
      {{static_cast<double>(want + 1)}, "the last of them does not fit any more"}};
  const std::int64_t got = exercise::most_layers(card, width, p, g, rows);
  check.equal(fmt::format("{}, layers of {} x {} in {}, gradients in {}, {} rows", card, width,
                          width, name_of(p), name_of(g), rows),
              std::vector{static_cast<float>(got)}, std::vector{static_cast<double>(want)},
              mistakes);
}

}  // namespace

int main(int argc, char** argv) {
  return run_exercise(argc, argv, "ch01_ex4", "as many layers as a dry card takes",
                      [](ExerciseCheck& check) {
                        check_case(check, "80GB", 10000, DType::bf16, DType::bf16, 0);
                        check_case(check, "80GiB", 10000, DType::bf16, DType::bf16, 0);
                        check_case(check, "24GB", 4096, DType::bf16, DType::f32, 2048);
                        check_case(check, "24GiB", 4096, DType::f32, DType::f32, 16384);
                        check_case(check, "1KB", 1857, DType::bf16, DType::bf16, 1);
                      });
}
