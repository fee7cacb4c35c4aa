#pragma once
// Tests of several ranks. Every rank runs the same test; at the end of each the ranks agree on its
// verdict, and every rank's failures are printed with the rank. A test works locally first, takes
// part in the collectives, and asserts last: an assertion that leaves the test early on one rank
// would leave the others waiting.
//
// Under mpirun the ranks are its processes. With --world N they are threads, made anew for each
// test, in a binary that starts in no time.
#include <gtest/gtest.h>

#include <functional>

#include "common/comm/context.hpp"

namespace fivecuts {

/// The rank's context, inside a RANK_TEST: under mpirun the same for all tests of a binary.
Context& test_context();

/// Whether this is the run in which what does not depend on the number of ranks is tested: on one.
inline bool once() { return test_context().size() == 1; }

/// Collective. Another context of the same ranks, made from `options`; on the device of the run,
/// unless they say `meta`.
std::unique_ptr<Context> another_context(CommonOptions options);

/// Runs `body` as every rank of this process.
void on_every_rank(const std::function<void()>& body);

/// Bytes of this process that are in memory; 0 where the system does not say.
std::int64_t resident_bytes();

/// Whether the SVG text `drawn` is the picture that a lesson shows, `file` of the source folder. Of
/// numbers, the last digits may depend on the processor.
testing::AssertionResult same_picture(const std::string& drawn, const std::string& file);

}  // namespace fivecuts

/// As TEST, with a body for each rank.
#define RANK_TEST(suite, name)                                               \
  static void suite##_##name##_of_a_rank();                                  \
  TEST(suite, name) { fivecuts::on_every_rank(suite##_##name##_of_a_rank); } \
  static void suite##_##name##_of_a_rank()

/// As RANK_TEST, of something that knows no ranks, or makes worlds of its own: several ranks would
/// test it again and find nothing new.
#define ONE_RANK_TEST(suite, name)                     \
  static void suite##_##name##_alone();                \
  RANK_TEST(suite, name) {                             \
    if (fivecuts::once()) suite##_##name##_alone();    \
  }                                                    \
  static void suite##_##name##_alone()
