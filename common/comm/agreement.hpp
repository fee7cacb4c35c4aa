#pragma once
// Before a collective: all ranks of a group are about to do the same, or none goes on.
#include <string>

#include "common/comm/guard.hpp"
#include "common/comm/transport.hpp"

namespace fivecuts {

/// Collective. Rank 0 compares what each rank is about to do and answers all. Throws the same
/// GuardError on every rank that waits here if one differs; whoever does not come is named by the
/// watchdog. `name` is the group's. Returns the latest time stamp of all.
double agree(Transport& transport, Guard& guard, const std::string& name, const Envelope& mine);

}  // namespace fivecuts
