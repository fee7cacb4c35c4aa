#include "ch01_overview/exercise.hpp"

namespace fivecuts::exercise {

Cut name_the_cut(const ModelShape& model, const std::vector<Card>& cards) {
  unfinished("TODO(ch01/ex2): say which cut these cards hold");
}

}  // namespace fivecuts::exercise
