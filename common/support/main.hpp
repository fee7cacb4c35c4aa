#pragma once
// The main wrapper: from the command line to the exit status, the same for every program of the
// project.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "common/comm/context.hpp"

namespace fivecuts {

struct Program {
  std::string name;   ///< "ch02_data_parallel"
  std::string about;  ///< a line for --help
  /// Adds the program's own flags.
  std::function<void(CLI::App&)> declare;
  /// The run. Returns this rank's ExitStatus; the process ends with the highest of all ranks.
  /// Throws UsageError, on every rank alike and before any communication, for a wrong use that
  /// depends on the number of ranks.
  std::function<int(Context&)> story;
  /// With --world: a run that starts its ranks itself, by run_world() (tests). Returns the status.
  std::function<int(int ranks, const CommonOptions&)> starts_threads = nullptr;
  double timeout_s = 60;  ///< what --timeout is without being given
  bool observed = true;   ///< false: without guard and clock (benchmarks)
};

/// Starts MPI, reads the flags, runs the story, and ends every rank in order: with the story's
/// status, or, if anything is thrown, with one sentence and the status of error.hpp.
int run_program(int argc, char** argv, const Program& program);

/// A flag for a whole number in [least, most]; the refusal says what was given and what is
/// possible.
CLI::Option* add_count(CLI::App& app, const std::string& flag, std::int64_t& value,
                       std::int64_t least, std::int64_t most, const std::string& help);
/// A flag for a number above 0 and up to `most`.
CLI::Option* add_positive(CLI::App& app, const std::string& flag, double& value, double most,
                          const std::string& help);

/// The folder with docs/ and the data, as it was when the program was built.
std::filesystem::path source_folder();

}  // namespace fivecuts
