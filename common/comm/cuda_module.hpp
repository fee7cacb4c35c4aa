#pragma once
// The door to everything CUDA and NCCL. Behind it is one library, which is opened when somebody
// asks for it: a process that stays on the cpu does not pay for it. Where programs are built with
// it inside (preset emulated), nothing needs to be opened.
#include <memory>
#include <string>

#include "common/comm/transport.hpp"
#include "common/compute/backend.hpp"
#include "common/compute/gpu.hpp"

namespace fivecuts {

enum class Lane : std::uint8_t;

class CudaModule {
 public:
  virtual ~CudaModule() = default;
  virtual Gpus gpus() = 0;
  /// A rank's GPU, `number` of those that it sees. `lane` tells the lane of the calling thread.
  virtual std::shared_ptr<Backend> backend(int number, Lane (*lane)()) = 0;
  virtual bool has_nccl() = 0;
  /// Collective over `host`, whose ranks have a GPU each; `on` is this rank's, made here, and
  /// outlives the transport.
  virtual std::unique_ptr<Transport> nccl(std::unique_ptr<Transport> host, Backend& on) = 0;
};

/// True if the project was built with CUDA (preset cuda).
bool built_with_cuda();

/// The module; null if there is none that could be opened, and then `why_not` says why.
CudaModule* cuda_module(std::string& why_not);

}  // namespace fivecuts
