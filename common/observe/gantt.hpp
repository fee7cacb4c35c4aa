#pragma once
// A timeline in the terminal: a line of letters for each lane of each rank.
//
//   two ranks
//           |0              |2 ms           |4 ms     computes
//   rank 0 |F1FFFFFFF2FFFFFFBBBBBBBBBBBBBBBB        | 80%
//     comm |                        ........########|
//   rank 1 |........========                        | 0%
//   F forward  B backward  # all_reduce  = exchange  . waiting
//   total 5 ms
#include <string>

#include "common/observe/timeline.hpp"

namespace fivecuts {

/// At most `width` terminal cells wide (never fewer than 40). A cell shows the event that covers
/// most of it, a blank if more than half of it is idle; a shorter event still takes its cell if
/// that would be blank, and those that find none are counted below. "F3FF" is forward 3.
/// Throws Failure as extent_of does.
std::string gantt(const Timeline& timeline, int width = 100);

}  // namespace fivecuts
