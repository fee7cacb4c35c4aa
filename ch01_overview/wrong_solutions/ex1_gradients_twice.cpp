// expect: not yet.*gradients are counted twice
#include "ch01_overview/exercise.hpp"

namespace fivecuts::exercise {

StateBytes state_bytes(std::int64_t count, DType parameter, DType gradient) {
  const std::int64_t copy = parameter == DType::f32 ? 0 : 4;
  const std::int64_t gradient_bytes = count * size_of(gradient);
  return {count * size_of(parameter), gradient_bytes, gradient_bytes + count * (copy + 8)};
}

}  // namespace fivecuts::exercise
