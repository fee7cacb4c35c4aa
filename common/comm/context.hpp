#pragma once
// Everything that one rank has. Nothing of it is global, so that ranks can be threads of one
// process.
#include <fmt/format.h>

#include <cstdio>
#include <optional>

#include "common/comm/communicator.hpp"

namespace fivecuts {

/// The flags that every program has (support/main.hpp reads them).
struct CommonOptions {
  std::int64_t memory_cap = MemoryLedger::unlimited;  ///< bytes a rank may hold
  double timeout_s = 60;
  bool guard = true;
  Device::Kind device = Device::Kind::cpu;
  std::optional<Cluster> cluster;  ///< what the clock counts by; none: it is off
  bool verbose = false;
  std::string language = "en";  ///< of the claims: "en" or "zh"
};

class Context {
 public:
  Context(std::unique_ptr<Transport> world_transport, const CommonOptions& chosen)
      : options(chosen),
        clock(chosen.cluster),
        memory(chosen.memory_cap),
        device(memory, chosen.device, &clock),
        guard(world_transport->rank(), world_transport->size(), chosen.timeout_s, chosen.guard),
        world("world", std::move(world_transport), observers()) {}

  Observers observers() {
    return {&traffic, &guard, &stream, &clock, device.dry(), options.verbose};
  }

  int rank() const { return world.rank(); }
  int size() const { return world.size(); }

  /// Printed by rank 0 alone.
  template <class... Args>
  void say(fmt::format_string<Args...> format, Args&&... args) const {
    if (rank() == 0) {
      fmt::print(format, std::forward<Args>(args)...);
      std::fflush(stdout);
    }
  }

  CommonOptions options;
  Clock clock;
  MemoryLedger memory;
  Device device;
  TrafficLedger traffic;
  Guard guard;
  CommStream stream;
  Communicator world;
};

}  // namespace fivecuts
