#pragma once
// A GPU as a backend. Known to the CUDA module alone (comm/cuda_module.hpp), which nvcc compiles.
//
// Each lane has a stream: the caller's, `compute`, and that of async(), `comm`. What a thread asks
// for goes on its lane's stream; the two meet at marks, which are events. The host waits for
// neither, but to bring numbers to itself.
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <array>
#include <atomic>
#include <deque>
#include <mutex>
#include <source_location>
#include <vector>

#include "common/compute/backend.hpp"
#include "common/compute/gpu.hpp"
#include "common/observe/events.hpp"

namespace fivecuts {

/// Fails with CUDA's own words, unless `code` is success.
void check_cuda(cudaError_t code, const char* expression,
                std::source_location where = std::source_location::current());
#define FIVECUTS_CUDA(call) ::fivecuts::check_cuda(call, #call)

/// Pinned memory of the host. A block must not be given back before the last copy of it is done.
class PinnedMemory final : public MemorySource {
 public:
  void* allocate(std::size_t bytes) override;
  void release(void* data) noexcept override;
};

class CudaBackend final : public Backend {
 public:
  /// Computes on GPU `number` of those that this process sees. `lane_of` tells the calling
  /// thread's.
  CudaBackend(int number, Lane (*lane_of)());
  ~CudaBackend() override;
  CudaBackend(const CudaBackend&) = delete;

  cudaStream_t stream();  ///< of the calling thread's lane
  int number() const { return number_; }

  bool pools_memory() const override { return true; }
  void* allocate(std::size_t bytes) override;
  void release(void* data) noexcept override;
  MemorySource& host_memory() override { return pinned_; }

  Device::Mark mark() override;
  void follow(const Device::Mark& mark) override;
  void synchronize() override;
  void wait_by(Device::Wait wait) override { wait_ = std::move(wait); }
  std::int64_t host_waits() const override { return host_waits_; }
  std::int64_t progress() override;
  /// Whether what is before `mark` is done.
  static bool reached(const Device::Mark& mark);

  void zero(Tensor to) override;
  void copy(Tensor from, Tensor to) override;
  void copy_in(const void* host, Tensor to) override;
  void copy_out(Tensor from, void* host) override;
  void round_to_bf16(Tensor from, Tensor to) override;
  void add(Tensor to, Tensor from) override;
  void maximum(Tensor to, Tensor from) override;
  void scale(Tensor to, float factor) override;
  void add_bias(Tensor z, Tensor bias) override;
  void bias_gelu(Tensor z, Tensor bias, Tensor y) override;
  void gelu_backward(Tensor z, Tensor dy) override;
  void add_column_sums(Tensor from, Tensor to) override;
  void add_square_sums(Tensor from, Tensor to) override;
  void add_up(Tensor from, Tensor to) override;
  void clip_factor(Tensor squares, float samples, float longest, Tensor norm_and_factor) override;
  void multiply(Tensor a, Tensor b, Tensor c) override;
  void multiply_transposed(Tensor a, Tensor b, Tensor c) override;
  void add_transposed_product(Tensor a, Tensor b, Tensor c) override;
  void softmax_cross_entropy(Tensor logits, Tensor labels, Tensor loss) override;
  void adam(Tensor parameter, Tensor gradient, Tensor m, Tensor v, const AdamStep& step,
            Tensor factor) override;

 private:
  struct LaneState {
    cudaStream_t stream = nullptr;
    cublasHandle_t blas = nullptr;  // made at the first product
    int since_milepost = 0;
    std::deque<Device::Mark> mileposts;  // not yet reached, as far as anyone has looked
  };
  LaneState& lane();
  cublasHandle_t blas();
  template <class Functor>
  void for_each(std::int64_t rows, std::int64_t cols, const Functor& f);
  void product(bool transpose_a, bool transpose_b, Tensor a, Tensor b, Tensor c, float beta);
  void give_other_lane_time();
  cudaEvent_t event();
  void launched();  // a kernel or a product, on the calling thread's lane

  const int number_;
  Lane (*const lane_)();
  int processors_ = 1;
  std::array<LaneState, 2> lanes_;  // each is used by its own thread only
  PinnedMemory pinned_;
  Device::Wait wait_;
  std::atomic<std::int64_t> host_waits_ = 0;
  std::mutex mutex_;  // of the events: a mark may be let go by another thread
  std::vector<cudaEvent_t> free_events_;
  std::mutex progress_mutex_;  // of the mileposts
  std::int64_t passed_ = 0;    // mileposts
};

/// What this process sees. Any error means: none.
Gpus find_gpus();

}  // namespace fivecuts
