#include "ch01_overview/exercise.hpp"

namespace fivecuts::exercise {

Category cut_first(const MemoryLedger& ledger) {
  Category most = Category::parameter;
  for (const Category c : all_categories) {
    if (ledger.peak(c) > ledger.peak(most)) most = c;
  }
  return most;
}

}  // namespace fivecuts::exercise
