// What CUDA's errors become. Emulated builds only: there CUDA's headers and the module are at hand.
#include "common/compute/cuda_backend.hpp"

#include "common/tests/helpers.hpp"

namespace fivecuts {
namespace {

std::string sentence(cudaError_t code) {
  return message_of<Failure>([&] { check_cuda(code, "cudaEventQuery"); });
}

RANK_TEST(CudaErrors, SayWhatFailedInCudasWords) {
  EXPECT_NO_THROW(check_cuda(cudaSuccess, "fine"));
  const std::string said = sentence(cudaErrorInvalidValue);
  EXPECT_TRUE(has(said, "cudaEventQuery failed: ")) << said;
  EXPECT_TRUE(has(said, "cudaErrorInvalidValue")) << said;
  EXPECT_FALSE(has(said, "kernel")) << said;
}

RANK_TEST(CudaErrors, OfAKernelSayThatItStartedEarlier) {
  for (const cudaError_t code : {cudaErrorIllegalAddress, cudaErrorLaunchFailure}) {
    const std::string said = sentence(code);
    EXPECT_TRUE(has(said, "a kernel failed that was started earlier")) << said;
    EXPECT_TRUE(has(said, "CUDA_LAUNCH_BLOCKING=1")) << said;
  }
}

RANK_TEST(CudaErrors, OfABuildForOtherGpusSayWhatToBuild) {
  const std::string said = sentence(cudaErrorNoKernelImageForDevice);
  EXPECT_TRUE(has(said, "-DCMAKE_CUDA_ARCHITECTURES=native, or --device cpu")) << said;
}

}  // namespace
}  // namespace fivecuts
