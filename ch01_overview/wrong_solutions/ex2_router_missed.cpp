// expect: not yet.*router is on every card
#include "ch01_overview/exercise.hpp"

namespace fivecuts::exercise {

Cut name_the_cut(const ModelShape& model, const std::vector<Card>& cards) {
  bool flat = false, sliced = false, all = true;
  for (const Card& card : cards) {
    all = all && card.size() == model.size();
    for (const Block& block : card) {
      const std::int64_t count = block.rows.count * block.cols.count;
      sliced = sliced || count < model[block.layer].parameters();
      flat = flat || block.optimizer.count < count;
    }
  }
  if (sliced) return Cut::tensor;
  if (flat) return Cut::zero;
  return all ? Cut::data : Cut::pipeline;
}

}  // namespace fivecuts::exercise
