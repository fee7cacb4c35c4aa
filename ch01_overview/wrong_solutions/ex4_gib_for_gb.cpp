// expect: not yet.*GiB was taken for GB
#include "ch01_overview/exercise.hpp"

#include <cstdlib>
#include <string>

namespace fivecuts::exercise {

std::int64_t most_layers(std::string_view card, std::int64_t width, DType parameter, DType gradient,
                         std::int64_t rows) {
  const std::int64_t copy = parameter == DType::f32 ? 0 : 4;
  const std::int64_t a_parameter = size_of(parameter) + size_of(gradient) + copy + 4 + 4;
  const std::int64_t a_layer = width * width * a_parameter + 2 * rows * width * size_of(parameter);
  return std::atoll(std::string(card).c_str()) * 1000000000 / a_layer;
}

}  // namespace fivecuts::exercise
