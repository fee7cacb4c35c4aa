// What the CUDA module shows to the rest.
#include "common/comm/cuda_module.hpp"
#include "common/comm/transport_nccl.hpp"

namespace fivecuts {
namespace {

class Module final : public CudaModule {
 public:
  Gpus gpus() override { return find_gpus(); }
  std::shared_ptr<Backend> backend(int number, Lane (*lane)()) override {
    return std::make_shared<CudaBackend>(number, lane);
  }
#ifdef FIVECUTS_NCCL
  bool has_nccl() override { return true; }
  std::unique_ptr<Transport> nccl(std::unique_ptr<Transport> host, Backend& on) override {
    return nccl_transport(std::move(host), dynamic_cast<CudaBackend&>(on));
  }
#else
  bool has_nccl() override { return false; }
  std::unique_ptr<Transport> nccl(std::unique_ptr<Transport>, Backend&) override {
    fail("this build has no NCCL");
  }
#endif
};

}  // namespace
}  // namespace fivecuts

extern "C" __attribute__((visibility("default"))) fivecuts::CudaModule* fivecuts_cuda_module() {
  static fivecuts::Module module;
  return &module;
}
