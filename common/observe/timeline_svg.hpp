#pragma once
// Timelines as a picture: one panel below the other, all on one time scale, so that lengths
// compare.
#include <span>
#include <string>

#include "common/observe/timeline.hpp"

namespace fivecuts {

/// An SVG file. Panels are all in seconds or all in slots. Each rank has a row with its compute
/// lane and, half as high, its comm lane if it uses that; the part of an event in which it waited
/// is pale and hatched. A bar bears its name, or its letter in the legend and its number, if that
/// fits; its tooltip says all. Throws Failure as extent_of does.
std::string timeline_svg(std::span<const Timeline> panels, const std::string& title);

}  // namespace fivecuts
