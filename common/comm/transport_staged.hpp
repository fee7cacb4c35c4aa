#pragma once
// The transport of GPU memory by way of host memory: for ranks that share a GPU, or have no NCCL.
#include <memory>

#include "common/comm/transport.hpp"

namespace fivecuts {

/// Over `host`, for tensors of `device`. What is sent is copied to the host first, and what comes
/// in is copied to the device in wait(): the host waits for each copy. The host memory is pinned,
/// kept for the next message, and in no ledger: a rank's `memory` is its device's.
std::unique_ptr<Transport> staged_transport(std::unique_ptr<Transport> host, Device& device);

}  // namespace fivecuts
