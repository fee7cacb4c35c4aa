// expect: not yet.*8 bytes.*copy of the parameters
#include "ch01_overview/exercise.hpp"

namespace fivecuts::exercise {

StateBytes state_bytes(std::int64_t count, DType parameter, DType gradient) {
  return {count * size_of(parameter), count * size_of(gradient), count * (4 + 4)};
}

}  // namespace fivecuts::exercise
