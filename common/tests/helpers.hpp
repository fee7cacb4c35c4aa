#pragma once
// What several of these tests need.
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "common/compute/operations.hpp"
#include "common/model/random.hpp"
#include "common/support/test_main.hpp"

namespace fivecuts {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

inline constexpr float nan_f = std::numeric_limits<float>::quiet_NaN();
inline constexpr double nan_d = std::numeric_limits<double>::quiet_NaN();
inline constexpr double infinity = std::numeric_limits<double>::infinity();

/// Around the width of the vector loops, and nothing at all.
inline constexpr std::int64_t awkward[] = {0, 1, 15, 16, 17, 33};

/// f(rows, cols) for each pair of them.
template <class F>
void for_sizes(F f) {
  for (const std::int64_t rows : awkward) {
    for (const std::int64_t cols : awkward) {
      SCOPED_TRACE(fmt::format("{} x {}", rows, cols));
      f(rows, cols);
    }
  }
}

/// An index of a host container.
inline std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

/// The text of the Error that f() throws; a test then looks for words in it.
template <class Error, class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "(nothing was thrown)";
}

inline bool has(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

/// A file of this rank alone, gone with the object.
struct TemporaryFile {
  explicit TemporaryFile(const std::string& content)
      : path(std::filesystem::temp_directory_path() /
             fmt::format("fivecuts_{}_{}.txt", getpid(), test_context().rank())) {
    std::ofstream(path) << content;
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { std::filesystem::remove(path); }
  std::filesystem::path path;
};

/// Numbers in [-bound, bound), other ones for each `number`.
inline Buffer random_buffer(std::int64_t rows, std::int64_t cols, std::uint32_t number,
                            float bound = 1) {
  Buffer buffer(test_context().device, Category::workspace, rows, cols);
  fill_uniform(buffer, 7, number, bound);
  return buffer;
}

inline Buffer labels_buffer(const std::vector<std::int64_t>& labels) {
  Buffer buffer(test_context().device, Category::workspace, 1,
                static_cast<std::int64_t>(labels.size()), DType::i64);
  copy_in(labels, buffer);
  return buffer;
}

inline std::vector<double> doubles(Tensor tensor) {
  const auto values = copy_out(tensor);
  return {values.begin(), values.end()};
}

/// The largest |got - want| / max(1, |want|); infinite where a number is NaN or counts differ.
inline double worst_error(Tensor got, const std::vector<double>& want) {
  const std::vector<double> values = doubles(got);
  if (values.size() != want.size()) return infinity;
  double worst = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double error = std::abs(values[i] - want[i]) / std::max(1.0, std::abs(want[i]));
    if (!(error <= worst)) worst = std::isnan(error) ? infinity : error;
  }
  return worst;
}

}  // namespace fivecuts
