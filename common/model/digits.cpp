#include "common/model/digits.hpp"

#include <charconv>
#include <fstream>
#include <sstream>
#include <string>

#include "common/support/error.hpp"

namespace fivecuts {

namespace {

/// A whole number from 0 to 16 and nothing else; -1 otherwise.
int number_in(std::string_view cell) {
  int value = -1;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  return error == std::errc() && end == cell.data() + cell.size() && value <= 16 ? value : -1;
}

/// 64 pixels and the label; empty if `line` is anything else.
std::vector<int> numbers_in(std::string line) {
  if (line.ends_with('\r')) line.pop_back();  // a checkout with Windows line ends
  std::istringstream cells(line);
  std::string cell;
  std::vector<int> values;
  while (std::getline(cells, cell, ',')) {
    values.push_back(number_in(cell));
    if (values.back() < 0) return {};
  }
  if (values.size() != Samples::pixels + 1 || values.back() >= Samples::classes) return {};
  return values;
}

}  // namespace

Digits load_digits() { return load_digits(FIVECUTS_SOURCE_DIR "/common/model/data/digits.csv"); }

Digits load_digits(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) fail(fmt::format("cannot open the digits in {}", file.string()));
  Digits digits;
  std::string line;
  for (std::int64_t row = 0; std::getline(in, line); ++row) {
    Samples& samples = row % 5 == 4 ? digits.test : digits.train;
    const std::vector<int> values = numbers_in(line);
    if (values.empty()) {
      fail(fmt::format("{}, line {}: not 64 pixels from 0 to 16 and a digit", file.string(),
                       row + 1));
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
