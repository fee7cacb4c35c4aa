// expect: not yet.*not always the optimizer state
#include "ch01_overview/exercise.hpp"

namespace fivecuts::exercise {

Category cut_first(const MemoryLedger& ledger) { return Category::optimizer; }

}  // namespace fivecuts::exercise
