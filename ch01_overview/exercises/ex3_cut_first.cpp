#include "ch01_overview/exercise.hpp"

namespace fivecuts::exercise {

Category cut_first(const MemoryLedger& ledger) {
  unfinished("TODO(ch01/ex3): find the category that held the most bytes");
}

}  // namespace fivecuts::exercise
