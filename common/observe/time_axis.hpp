#pragma once
// Virtual time as people read it, and the axis under every timeline.
#include <string>
#include <vector>

namespace fivecuts {

/// 0.00125 -> "1.25 ms"; s, ms, µs or ns, at most four digits.
std::string show_time(double seconds);

/// Maps time to a length (terminal cells, pixels) and chooses round numbers to write beside it.
class TimeAxis {
 public:
  struct Tick {
    double at;  ///< along the length
    std::string label;
  };
  /// `total` seconds take `length`; ticks are at least `room` apart. Everything is at 0 where the
  /// total is 0.
  TimeAxis(double total, double length, double room);
  double at(double seconds) const { return seconds * scale_; }
  /// From 0 to the end, all in one unit.
  const std::vector<Tick>& ticks() const { return ticks_; }

 private:
  double scale_ = 0;
  std::vector<Tick> ticks_;
};

}  // namespace fivecuts
