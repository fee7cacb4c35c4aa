#pragma once
// What can go wrong, and the status the process ends with. The main wrapper (main.hpp) prints it.
#ifndef __CUDACC__  // nvcc stumbles over it
#include <fmt/format.h>
#endif

#include <source_location>
#include <stdexcept>
#include <string>

namespace fivecuts {

enum ExitStatus : int {
  exit_ok = 0,
  exit_failed = 1,    // a golden check, a claim or a fault in a run
  exit_usage = 2,     // wrong use: refused by every rank alike, before any communication
  exit_guard = 3,     // the guard ended the run: ranks disagree, or one never came
  exit_blocked = 77,  // this machine lacks what the program needs (exercises, tests)
};

/// Wrong use. The sentence says what was given, what is possible, and a command that works.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The ranks disagree about what they do together; found by the guard.
struct GuardError : std::runtime_error {
  /// `said_elsewhere`: another rank throws the same sentence, and is the one to print it.
  explicit GuardError(const std::string& what, bool said = false)
      : std::runtime_error(what), said_elsewhere(said) {}
  bool said_elsewhere;
};

/// A fault in a run, with the place where it was found.
struct Failure : std::runtime_error {
  Failure(const std::string& what, std::source_location where);
};

[[noreturn]] void fail(const std::string& what,
                       std::source_location where = std::source_location::current());

/// Fails unless `condition` holds; never compiled out, so it may guard against wrong data too.
inline void require(bool condition, const char* what,
                    std::source_location where = std::source_location::current()) {
  if (!condition) fail(what, where);
}

}  // namespace fivecuts
