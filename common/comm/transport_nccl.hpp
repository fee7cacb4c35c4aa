#pragma once
// The transport over NCCL: one GPU for each rank. Known to the CUDA module alone.
#include <memory>

#include "common/comm/transport.hpp"
#include "common/compute/cuda_backend.hpp"

namespace fivecuts {

/// Collective over `host`, which carries all that is not data. A communicator of NCCL for all of
/// its ranks, on `gpu`. Needs nccl.h: is there if FIVECUTS_NCCL is defined.
std::unique_ptr<Transport> nccl_transport(std::unique_ptr<Transport> host, CudaBackend& gpu);

}  // namespace fivecuts
