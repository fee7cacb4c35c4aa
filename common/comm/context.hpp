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
  int gpu = 0;        ///< on `cuda`: this rank's, of those that it sees (device_choice.hpp)
  bool nccl = false;  ///< on `cuda`: else data goes by way of host memory
  std::string why_this_device;     ///< a line; empty if it was asked for by name
  std::optional<Cluster> cluster;  ///< what the clock counts by; none: it is off
  bool verbose = false;
  std::string language = "en";  ///< of the claims: "en" or "zh"
};

class Context {
 public:
  /// Collective over `host`, which moves host memory.
  Context(std::unique_ptr<Transport> host, const CommonOptions& chosen);
  Context(const Context&) = delete;

  Observers observers() { return {&traffic, &guard, &stream, &clock, &device, options.verbose}; }

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

 private:
  std::unique_ptr<Transport> transport_over(std::unique_ptr<Transport> host);
  void wait_for_device(const std::function<bool()>& done);
};

}  // namespace fivecuts
