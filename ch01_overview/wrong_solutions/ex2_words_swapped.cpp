// expect: not yet.*words of direction
#include "ch01_overview/exercise.hpp"

namespace fivecuts::exercise {

Cut name_the_cut(const ModelShape& model, const std::vector<Card>& cards) {
  std::vector<std::size_t> holders(model.size());
  for (const Card& card : cards) {
    for (const Block& block : card) {
      const LayerShape& layer = model[block.layer];
      if (block.rows.count < layer.in || block.cols.count < layer.out) return Cut::pipeline;
      if (block.optimizer.count < layer.parameters()) return Cut::zero;
      ++holders[block.layer];
    }
  }
  std::size_t on_all = 0;
  for (const std::size_t count : holders) on_all += count == cards.size() ? 1 : 0;
  if (on_all == model.size()) return Cut::data;
  return on_all > 0 ? Cut::expert : Cut::tensor;  // "vertical"
}

}  // namespace fivecuts::exercise
