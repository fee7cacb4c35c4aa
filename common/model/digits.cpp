#include "common/model/digits.hpp"

#include <fstream>
#include <sstream>
#include <string>

#include "common/support/error.hpp"

namespace fivecuts {

Digits load_digits() { return load_digits(FIVECUTS_SOURCE_DIR "/common/model/data/digits.csv"); }

Digits load_digits(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) fail(fmt::format("cannot open the digits in {}", file.string()));
  Digits digits;
  std::string line;
  for (std::int64_t row = 0; std::getline(in, line); ++row) {
    Samples& samples = row % 5 == 4 ? digits.test : digits.train;
    std::istringstream cells(line);
    std::string cell;
    std::vector<int> values;
    while (std::getline(cells, cell, ',')) {
      char* end = nullptr;
      values.push_back(static_cast<int>(std::strtol(cell.c_str(), &end, 10)));
      if (end == cell.c_str() || values.back() < 0 || values.back() > 16) values.clear();
    }
    if (values.size() != Samples::pixels + 1 || values.back() >= Samples::classes) {
      fail(fmt::format("{}, line {}: not 64 pixels from 0 to 16 and a digit", file.string(), row + 1));
    }
    for (std::size_t k = 0; k < Samples::pixels; ++k) {
      samples.x.push_back(static_cast<float>(values[k]) / 16.0f);
    }
    samples.labels.push_back(values.back());
  }
  if (digits.test.count() == 0) fail(fmt::format("{}: no digits in it", file.string()));
  return digits;
}

}  // namespace fivecuts
