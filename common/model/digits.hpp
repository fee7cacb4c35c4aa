#pragma once
// The data of every training run: 1,797 real handwritten digits (UCI, see data/README.md).
#include <cstdint>
#include <filesystem>
#include <vector>

namespace fivecuts {

/// Rows of `pixels` values in [0, 1], and the digit of each row.
struct Samples {
  static constexpr std::int64_t pixels = 64, classes = 10;
  std::vector<float> x;
  std::vector<std::int64_t> labels;
  std::int64_t count() const { return static_cast<std::int64_t>(labels.size()); }
};

struct Digits {
  Samples train;  ///< 1,438
  Samples test;   ///< every fifth row of the file, 359, held out
};

/// Throws Failure with the file's name and line if it is missing or not as expected.
Digits load_digits(const std::filesystem::path& file);
Digits load_digits();  ///< the copy in this repository

}  // namespace fivecuts
