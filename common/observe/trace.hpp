#pragma once
// Timelines as Chrome trace events, for https://ui.perfetto.dev or chrome://tracing. Format: "Trace
// Event Format", the Chromium project,
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
#include <span>
#include <string>

#include "common/observe/timeline.hpp"

namespace fivecuts {

/// JSON with one process for each panel (numbered from 1), in it one thread for each lane that a
/// rank uses (2·rank for compute, 2·rank + 1 for comm), and one complete event for each event; all
/// ranks. Times are microseconds from the panel's first event on, whole nanoseconds. Throws Failure
/// as extent_of does.
std::string chrome_trace(std::span<const Timeline> panels);

}  // namespace fivecuts
