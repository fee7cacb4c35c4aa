// expect: not yet.*not only model state
#include "ch01_overview/exercise.hpp"

namespace fivecuts::exercise {

Category cut_first(const MemoryLedger& ledger) {
  Category most = Category::parameter;
  for (const Category c : {Category::gradient, Category::optimizer}) {
    if (ledger.peak(c) > ledger.peak(most)) most = c;
  }
  return most;
}

}  // namespace fivecuts::exercise
