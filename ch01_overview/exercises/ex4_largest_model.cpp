#include "ch01_overview/exercise.hpp"

namespace fivecuts::exercise {

std::int64_t most_layers(std::string_view card, std::int64_t width, DType parameter, DType gradient,
                         std::int64_t rows) {
  unfinished("TODO(ch01/ex4): count the layers that fit on the card");
}

}  // namespace fivecuts::exercise
