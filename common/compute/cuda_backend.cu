// A GPU's memory and order, and the element-wise operations; products are in cuda_products.cu.
#include "common/compute/cuda_backend.hpp"

#include <algorithm>
#include <new>
#include <thread>

#include "common/compute/functors.hpp"

namespace fivecuts {

using std::int64_t;

void check_cuda(cudaError_t code, const char* expression, std::source_location where) {
  if (code == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // the next call is not to find this one's error
  const char* const hint =
      code == cudaErrorIllegalAddress || code == cudaErrorLaunchFailure || code == cudaErrorAssert
          ? "; a kernel failed that was started earlier: with CUDA_LAUNCH_BLOCKING=1 in the "
            "environment, the call that starts it fails"
          : "";
  fail(std::string(expression) + " failed: " + cudaGetErrorString(code) + " (" +
           cudaGetErrorName(code) + ")" + hint,
       where);
}

Gpus find_gpus() {
  Gpus gpus;
  int count = 0;
  // Without a driver the count stays what it was.
  if (const cudaError_t code = cudaGetDeviceCount(&count); code != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    gpus.why_none = cudaGetErrorString(code);
    return gpus;
  }
  for (int g = 0; g < count; ++g) {
    cudaDeviceProp properties;
    char bus[32] = {};
    FIVECUTS_CUDA(cudaGetDeviceProperties(&properties, g));
    FIVECUTS_CUDA(cudaDeviceGetPCIBusId(bus, sizeof bus, g));
    gpus.found.push_back({properties.name, bus});
  }
  if (count == 0) gpus.why_none = "no GPU is visible";
  return gpus;
}

// --- memory ---

namespace {

/// The result of a request for memory; throws std::bad_alloc if there is too little.
void* granted(void* data, cudaError_t code, const char* call) {
  if (code == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    throw std::bad_alloc();
  }
  check_cuda(code, call);
  return data;
}

/// A pool keeps what it has got from the driver, so that a training step asks for nothing new.
void keep_freed_memory(int gpu) {
#ifdef __CUDACC__
  cudaMemPool_t pool = nullptr;
  FIVECUTS_CUDA(cudaDeviceGetDefaultMemPool(&pool, gpu));
  std::uint64_t everything = UINT64_MAX;
  FIVECUTS_CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &everything));
#else
  static_cast<void>(gpu);
#endif
}

}  // namespace

void* PinnedMemory::allocate(std::size_t bytes) {
  void* data = nullptr;
  const cudaError_t code = cudaMallocHost(&data, bytes);
  return granted(data, code, "cudaMallocHost");
}

void PinnedMemory::release(void* data) noexcept { static_cast<void>(cudaFreeHost(data)); }

// Blocks come and go in the order of the lane that asks, so a block may be given back while what
// uses it is still to be computed.
void* CudaBackend::allocate(std::size_t bytes) {
  void* data = nullptr;
  const cudaError_t code = cudaMallocAsync(&data, bytes, stream());
  return granted(data, code, "cudaMallocAsync");
}

void CudaBackend::release(void* data) noexcept {
  static_cast<void>(cudaFreeAsync(data, stream()));
}

// --- order ---

namespace {
/// CUDA keeps a current device for each thread.
void use_gpu(int number) {
  thread_local int current = -1;
  if (current == number) return;
  FIVECUTS_CUDA(cudaSetDevice(number));
  current = number;
}
}  // namespace

CudaBackend::CudaBackend(int number, Lane (*lane_of)()) : number_(number), lane_(lane_of) {
  cudaDeviceProp properties;
  use_gpu(number_);
  FIVECUTS_CUDA(cudaGetDeviceProperties(&properties, number_));
  processors_ = properties.multiProcessorCount;
  keep_freed_memory(number_);
  for (LaneState& state : lanes_) {
    FIVECUTS_CUDA(cudaStreamCreateWithFlags(&state.stream, cudaStreamNonBlocking));
  }
}

CudaBackend::~CudaBackend() {
  for (const LaneState& state : lanes_) {
    static_cast<void>(cudaStreamSynchronize(state.stream));
    if (state.blas != nullptr) static_cast<void>(cublasDestroy(state.blas));
    static_cast<void>(cudaStreamDestroy(state.stream));
  }
  for (const cudaEvent_t event : free_events_) static_cast<void>(cudaEventDestroy(event));
}

CudaBackend::LaneState& CudaBackend::lane() {
  use_gpu(number_);
  return lanes_[static_cast<std::size_t>(lane_())];
}

cudaStream_t CudaBackend::stream() { return lane().stream; }

cudaEvent_t CudaBackend::event() {
  {
    const std::lock_guard lock(mutex_);
    if (!free_events_.empty()) {
      const cudaEvent_t event = free_events_.back();
      free_events_.pop_back();
      return event;
    }
  }
  cudaEvent_t event = nullptr;
  FIVECUTS_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return event;
}

Device::Mark CudaBackend::mark() {
  const cudaStream_t on = stream();
  const Device::Mark mark(event(), [this](void* event) {
    const std::lock_guard lock(mutex_);
    free_events_.push_back(static_cast<cudaEvent_t>(event));
  });
  FIVECUTS_CUDA(cudaEventRecord(static_cast<cudaEvent_t>(mark.get()), on));
  return mark;
}

void CudaBackend::follow(const Device::Mark& mark) {
  FIVECUTS_CUDA(cudaStreamWaitEvent(stream(), static_cast<cudaEvent_t>(mark.get()), 0));
}

bool CudaBackend::reached(const Device::Mark& mark) {
  const cudaError_t code = cudaEventQuery(static_cast<cudaEvent_t>(mark.get()));
  if (code == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());  // it is no error
    return false;
  }
  check_cuda(code, "cudaEventQuery");
  return true;
}

void CudaBackend::synchronize() {
  const Device::Mark all = mark();
  const auto done = [&] { return reached(all); };
  ++host_waits_;
  if (wait_) return wait_(done);
  while (!done()) std::this_thread::yield();
}

// --- moving ---

namespace {
std::size_t bytes_of(Tensor t) { return static_cast<std::size_t>(t.bytes()); }
}  // namespace

void CudaBackend::zero(Tensor to) {
  if (!to.empty()) FIVECUTS_CUDA(cudaMemsetAsync(to.data(), 0, bytes_of(to), stream()));
}

void CudaBackend::copy(Tensor from, Tensor to) {
  if (to.empty()) return;
  FIVECUTS_CUDA(cudaMemcpyAsync(to.data(), from.data(), bytes_of(to), cudaMemcpyDeviceToDevice,
                                stream()));
}

void CudaBackend::copy_in(const void* host, Tensor to) {
  if (to.empty()) return;
  FIVECUTS_CUDA(
      cudaMemcpyAsync(to.data(), host, bytes_of(to), cudaMemcpyHostToDevice, stream()));
}

// Waits first, where the wait is watched: the copy itself would wait unseen.
void CudaBackend::copy_out(Tensor from, void* host) {
  if (from.empty()) return;
  synchronize();
  FIVECUTS_CUDA(
      cudaMemcpyAsync(host, from.data(), bytes_of(from), cudaMemcpyDeviceToHost, stream()));
  FIVECUTS_CUDA(cudaStreamSynchronize(stream()));
}

// --- element-wise ---

namespace {

/// f(row, col) for every element, whatever the size of the grid.
template <class Functor>
__global__ void for_each_kernel(int64_t rows, int64_t cols, Functor f) {
  for (int64_t r = blockIdx.y; r < rows; r += gridDim.y) {
    const int64_t threads = static_cast<int64_t>(gridDim.x) * blockDim.x;
    int64_t c = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    for (; c < cols; c += threads) f(r, c);
  }
}

template <class T>
T* elements(Tensor t) {
  if (t.type() != dtype_of<T>()) t.wrong_type(dtype_of<T>());
  return reinterpret_cast<T*>(t.data());
}

/// f(its elements), in the type in which they are stored: float or Bf16.
template <class F>
void as_stored(Tensor t, const F& f) {
  if (t.type() == DType::bf16) {
    f(elements<Bf16>(t));
  } else {
    f(elements<float>(t));
  }
}

/// A functor that works on whole rows, one for each thread.
template <class F>
struct ByRow {
  F f;
  FIVECUTS_HD void operator()(int64_t, int64_t row) const { f(row, 0); }
};

}  // namespace

template <class Functor>
void CudaBackend::for_each(int64_t rows, int64_t cols, const Functor& f) {
  if (rows == 0 || cols == 0) return;
  constexpr int64_t block = 256;
  const int64_t most = int64_t{8} * processors_;  // blocks that a GPU can hold at once
  const int64_t across = std::min((cols + block - 1) / block, most);
  const int64_t down = std::clamp<int64_t>(most / across, 1, std::min<int64_t>(rows, 65535));
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(across), static_cast<unsigned>(down));
  config.blockDim = dim3(block);
  config.stream = stream();
  check_cuda(cudaLaunchKernelEx(&config, for_each_kernel<Functor>, rows, cols, f),
             "the launch of a kernel");
}

void CudaBackend::round_to_bf16(Tensor from, Tensor to) {
  for_each(1, to.count(), detail::RoundToBf16<>{elements<float>(from), elements<Bf16>(to)});
}

void CudaBackend::add(Tensor to, Tensor from) {
  const auto add_as = [&]<class T>(T* into) {
    for_each(1, to.count(), detail::Add<T>{into, elements<T>(from)});
  };
  if (to.type() == DType::i64) return add_as(elements<int64_t>(to));
  as_stored(to, add_as);
}

void CudaBackend::maximum(Tensor to, Tensor from) {
  const auto maximum_as = [&]<class T>(T* into) {
    for_each(1, to.count(), detail::Maximum<T>{into, elements<T>(from)});
  };
  if (to.type() == DType::i64) return maximum_as(elements<int64_t>(to));
  as_stored(to, maximum_as);
}

void CudaBackend::scale(Tensor to, float factor) {
  as_stored(to, [&]<class T>(T* t) { for_each(1, to.count(), detail::Scale<T>{t, factor}); });
}

void CudaBackend::add_bias(Tensor z, Tensor bias) {
  as_stored(z, [&]<class T>(T* sums) {
    for_each(z.rows(), z.cols(), detail::AddBias<T>{elements<T>(bias), sums, z.cols()});
  });
}

void CudaBackend::bias_gelu(Tensor z, Tensor bias, Tensor y) {
  as_stored(z, [&]<class T>(T* sums) {
    T* out = elements<T>(y);
    if (bias.empty()) {
      for_each(1, z.count(), detail::BiasGelu<T, false>{nullptr, sums, out, z.count()});
    } else {
      const T* biases = elements<T>(bias);
      for_each(z.rows(), z.cols(), detail::BiasGelu<T, true>{biases, sums, out, z.cols()});
    }
  });
}

void CudaBackend::gelu_backward(Tensor z, Tensor dy) {
  as_stored(z, [&]<class T>(T* in_out) {
    for_each(1, z.count(), detail::GeluBackward<T>{elements<T>(dy), in_out});
  });
}

// A thread a column: neighbours then read neighbouring elements.
void CudaBackend::add_column_sums(Tensor from, Tensor to) {
  as_stored(from, [&]<class From>(const From* summands) {
    as_stored(to, [&]<class To>(To* into) {
      for_each(1, from.cols(),
               detail::ColumnSums<From, To, 1>{summands, into, from.rows(), from.cols()});
    });
  });
}

// A thread a sum: neighbours read neighbouring elements.
void CudaBackend::add_square_sums(Tensor from, Tensor to) {
  as_stored(from, [&]<class From>(const From* numbers) {
    for_each(1, to.count(),
             detail::SquareSums<From, 1>{numbers, elements<float>(to), from.count(), to.count()});
  });
}

void CudaBackend::softmax_cross_entropy(Tensor logits, Tensor labels, Tensor loss) {
  as_stored(logits, [&]<class T>(T* rows) {
    using Softmax = detail::SoftmaxCrossEntropy<T>;
    const Softmax softmax{rows, elements<int64_t>(labels), elements<float>(loss), logits.cols()};
    for_each(1, logits.rows(), ByRow<Softmax>{softmax});
  });
}

void CudaBackend::adam(Tensor parameter, Tensor gradient, Tensor m, Tensor v, const AdamStep& s) {
  as_stored(parameter, [&]<class P>(P* p) {
    as_stored(gradient, [&]<class G>(const G* g) {
      const detail::Adam<P, G> update{p, g, elements<float>(m), elements<float>(v), s};
      for_each(1, parameter.count(), update);
    });
  });
}

}  // namespace fivecuts
