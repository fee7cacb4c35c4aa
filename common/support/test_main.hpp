#pragma once
// Tests under mpirun. Every rank runs the same tests; at the end of each the ranks agree on its
// verdict, and every rank's failures are printed with the rank. A test works locally first, takes
// part in the collectives, and asserts last: an assertion that leaves the test early on one rank
// would leave the others waiting.
#include <gtest/gtest.h>

#include "common/comm/context.hpp"

namespace fivecuts {

/// The rank's context, the same for all tests of a binary.
Context& test_context();

}  // namespace fivecuts
