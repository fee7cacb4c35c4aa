#pragma once
// The transport over MPI, host memory only.
#include <memory>

#include "common/comm/transport.hpp"

namespace fivecuts {

/// MPI from its start to its end. One per process; MPI's messages may come from several threads.
class MpiSession {
 public:
  MpiSession(int& argc, char**& argv);
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  /// All ranks of the job.
  std::unique_ptr<Transport> world();
};

/// Seconds by MPI's own watch: under a simulator, the simulated time.
double mpi_seconds();

/// True if this MPI is SimGrid's. Its ranks have one thread each, so there is neither guard nor
/// async() on it.
bool mpi_is_simulated();

// For benchmarks: Open MPI can be told which of its algorithms to take, if that is said before it
// starts. Groups made after force_mpi_all_reduce(k) then all-reduce by its number k, 1 to 6, or, by
// 0, as it would choose. False where this MPI cannot be told.
void allow_forced_mpi_all_reduce();
bool force_mpi_all_reduce(int algorithm);

/// Ends every rank of the job with `status`; usable from any thread, before and after MpiSession.
[[noreturn]] void abort_all_ranks(int status);

}  // namespace fivecuts
