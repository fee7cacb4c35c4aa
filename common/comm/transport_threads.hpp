#pragma once
// The transport whose ranks are threads of one process: no mpirun, one memory. For dry runs of
// large worlds, for debuggers, for fast tests.
#include <functional>
#include <memory>
#include <vector>

#include "common/comm/transport.hpp"

namespace fivecuts {

/// Ranks 0 .. `ranks` - 1 of a new world. Each is for one rank's threads: its caller, and one more
/// for every group that it splits off. What they share lives as long as the last of them.
std::vector<std::unique_ptr<Transport>> threads_world(int ranks);

/// Runs rank(transport) on `ranks` threads, each with its own rank of one world, and returns when
/// all have ended. What a rank throws is kept until then, and ends the others as soon as they wait
/// for anyone; the lowest rank's own is thrown again. If the system refuses a thread, no rank runs,
/// and a Failure says so.
void on_threads(int ranks, const std::function<void(std::unique_ptr<Transport>)>& rank);

}  // namespace fivecuts
