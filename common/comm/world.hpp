#pragma once
// A world of ranks inside a run: for dry runs at other sizes than the run's own, and for tests.
#include <functional>

#include "common/comm/context.hpp"
#include "common/comm/transport_threads.hpp"

namespace fivecuts {

/// Runs rank(context) on `ranks` threads, each with a context of its own that is made from
/// `options`, and returns when all have ended. A rank's exception ends the others too, and is
/// thrown again.
inline void run_world(int ranks, const CommonOptions& options,
                      const std::function<void(Context&)>& rank) {
  on_threads(ranks, [&](std::unique_ptr<Transport> transport) {
    Context context(std::move(transport), options);
    try {
      rank(context);
    } catch (...) {
      context.world.transport().give_up();  // before the context waits for its communication stream
      throw;
    }
    context.world.end_of_run();
  });
}

/// What rank(context) returns on each rank.
template <class T>
std::vector<T> world_results(int ranks, const CommonOptions& options,
                             const std::function<T(Context&)>& rank) {
  std::vector<T> results(static_cast<std::size_t>(ranks));
  run_world(ranks, options, [&](Context& context) {
    results[static_cast<std::size_t>(context.rank())] = rank(context);
  });
  return results;
}

}  // namespace fivecuts
