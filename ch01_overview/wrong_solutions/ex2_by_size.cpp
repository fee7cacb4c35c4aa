// expect: not yet.*whole matrices.*no layer is cut inside
#include "ch01_overview/exercise.hpp"

namespace fivecuts::exercise {

Cut name_the_cut(const ModelShape& model, const std::vector<Card>& cards) {
  std::int64_t held = 0, all = 0;
  for (const Block& block : cards.front()) held += block.rows.count * block.cols.count;
  for (const LayerShape& layer : model) all += layer.parameters();
  return held == all ? Cut::data : Cut::tensor;  // a part of the parameters: inside a layer?
}

}  // namespace fivecuts::exercise
