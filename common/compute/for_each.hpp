#pragma once
// Private to common/compute: runs a functor over an index range. Its public face is operations.hpp.
#include <cstdint>

namespace fivecuts::detail {

/// f(row, col) for every element, rows outermost. No call may depend on another one's result.
template <class Functor>
void for_each(std::int64_t rows, std::int64_t cols, const Functor& f) {
  for (std::int64_t r = 0; r < rows; ++r) {
#pragma GCC ivdep
    for (std::int64_t c = 0; c < cols; ++c) f(r, c);
  }
}

}  // namespace fivecuts::detail
