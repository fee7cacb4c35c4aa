#include "common/support/units.hpp"

#include <cmath>
#include <cstdlib>
#include <utility>

#include "common/support/error.hpp"

namespace fivecuts {

std::int64_t parse_bytes(std::string_view text) {
  static constexpr std::pair<std::string_view, double> units[] = {{"", 1},
                                                                  {"B", 1},
                                                                  {"KB", 1e3},
                                                                  {"MB", 1e6},
                                                                  {"GB", 1e9},
                                                                  {"TB", 1e12},
                                                                  {"KiB", 1024.},
                                                                  {"MiB", 1048576.},
                                                                  {"GiB", 1073741824.},
                                                                  {"TiB", 1099511627776.}};
  const std::string copy(text);
  char* end = nullptr;
  const double number = std::strtod(copy.c_str(), &end);
  std::string_view unit(end);
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  for (const auto& [name, factor] : units) {
    const double bytes = std::round(number * factor);  // 1.001 * 1e9 is a hair below 1,001,000,000
    const bool decimal = end != copy.c_str() && copy.find_first_of("xX") == std::string::npos;
    if (unit == name && decimal && bytes >= 1 && bytes < 9e18) {
      return static_cast<std::int64_t>(bytes);
    }
  }
  throw UsageError(
      fmt::format("'{}' is no amount of memory; give a positive number with B, KB, MB, GB, TB, "
                  "KiB, MiB, GiB or "
                  "TiB, as in --memory 80GB",
                  text));
}

std::string show_bytes(double bytes) {
  static constexpr std::pair<const char*, double> units[] = {
      {"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}};
  for (const auto& [name, factor] : units) {
    if (std::abs(bytes) >= factor) return fmt::format("{:.4g} {}", bytes / factor, name);
  }
  return fmt::format("{:.0f} B", bytes);
}

}  // namespace fivecuts
