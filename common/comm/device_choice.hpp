#pragma once
// Which device computes and what moves its data: decided by all ranks together, before NCCL starts.
#include <string>

#include "common/comm/transport.hpp"

namespace fivecuts {

/// What a command line asks for.
enum class DeviceWish { best, cpu, cuda, meta };

struct DeviceChoice {
  Device::Kind kind = Device::Kind::cpu;
  int gpu = 0;         ///< this rank's, of those that it sees
  bool nccl = false;   ///< else GPU memory goes by way of the host's
  std::string reason;  ///< a line, the same on all ranks; empty if there was nothing to choose
};

/// Collective over `world`. The best there is for all ranks alike: `cuda` over NCCL if each has a
/// GPU of its own; `cuda` over the host if they share GPUs or there is no NCCL; `cpu` if a rank
/// finds none. Ranks are given the GPUs of their machine in turn. Throws UsageError, on every rank
/// alike, if `cuda` is asked for and a rank cannot.
DeviceChoice choose_device(Transport& world, DeviceWish wish);

}  // namespace fivecuts
