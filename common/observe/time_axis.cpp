#include "common/observe/time_axis.hpp"

#include <fmt/format.h>

#include <cmath>

namespace fivecuts {
namespace {

struct Unit {
  const char* name;
  double seconds;
};

Unit unit_for(double seconds) {
  static constexpr Unit units[] = {{"s", 1}, {"ms", 1e-3}, {"µs", 1e-6}};
  for (const Unit& unit : units) {
    if (std::abs(seconds) >= unit.seconds) return unit;
  }
  return {"ns", 1e-9};
}

/// The smallest of 1, 2 or 5 times a power of ten that is no less than `least`.
double round_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double step : {power, 2 * power, 5 * power}) {
    if (step >= least) return step;
  }
  return 10 * power;
}

}  // namespace

std::string show_time(double seconds) {
  if (seconds == 0) return "0 s";
  const Unit unit = unit_for(seconds);
  return fmt::format("{:.4g} {}", seconds / unit.seconds, unit.name);
}

TimeAxis::TimeAxis(double total, double length, double room) {
  if (total > 0 && std::isfinite(length / total)) scale_ = length / total;
  if (scale_ == 0) {
    ticks_.push_back({0, "0"});
    return;
  }
  const Unit unit = unit_for(total);
  const double step = round_step(room / scale_);
  const int last = static_cast<int>(total / step * (1 + 1e-12));
  for (int i = 0; i <= last; ++i) {
    // Six digits hide that a multiple of 0.1 is not exact in binary.
    ticks_.push_back({i * step * scale_,
                      i == 0 ? "0" : fmt::format("{:.6g} {}", i * step / unit.seconds, unit.name)});
  }
}

}  // namespace fivecuts
