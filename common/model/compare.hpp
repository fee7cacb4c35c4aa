#pragma once
// Numbers of the ranks held against the golden ones. A comparison fails on NaN, and its verdict is the same
// on every rank.
#include <cstdint>
#include <span>
#include <string>

#include "common/comm/communicator.hpp"
#include "common/model/tolerance.hpp"

namespace fivecuts {

struct Verdict {
  bool ok = false;
  /// "weights within 2.0e-06 of golden (4 ranks x 4810 elements)"; or the first rank and global index that differ, with
  /// what was got and wanted.
  std::string text;
};

/// Collective. Each rank compares `got` with its `want` of equal count, whose element 0 has the global index
/// `first`: |got - want| <= absolute + relative * |want|. What is not finite is wrong, on either side.
Verdict compare(const Communicator& comm, const std::string& what, std::span<const float> got,
                std::span<const double> want, Tolerance tolerance, std::int64_t first = 0);

}  // namespace fivecuts
