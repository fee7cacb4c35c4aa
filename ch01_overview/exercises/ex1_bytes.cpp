#include "ch01_overview/exercise.hpp"

namespace fivecuts::exercise {

StateBytes state_bytes(std::int64_t count, DType parameter, DType gradient) {
  unfinished("TODO(ch01/ex1): count the bytes of parameters, gradients and optimizer state");
}

}  // namespace fivecuts::exercise
