// A GPU's memory and order. Its arithmetic is in cuda_elementwise.cu and cuda_products.cu.
#include "common/compute/cuda_backend.hpp"

#include <chrono>
#include <exception>
#include <new>
#include <thread>

namespace fivecuts {

using std::int64_t;

void check_cuda(cudaError_t code, const char* expression, std::source_location where) {
  if (code == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // the next call is not to find this one's error
  const char* hint = "";
  if (code == cudaErrorIllegalAddress || code == cudaErrorLaunchFailure ||
      code == cudaErrorAssert) {
    hint =
        "; a kernel failed that was started earlier: with CUDA_LAUNCH_BLOCKING=1 in the "
        "environment, the call that starts it fails";
  }
  if (code == cudaErrorNoKernelImageForDevice) {
    hint =
        "; this build is for other GPUs: cmake --preset cuda -DCMAKE_CUDA_ARCHITECTURES=native, "
        "or --device cpu";
  }
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
  try {
    for (int g = 0; g < count; ++g) {
      cudaDeviceProp properties;
      char bus[32] = {};
      FIVECUTS_CUDA(cudaGetDeviceProperties(&properties, g));
      FIVECUTS_CUDA(cudaDeviceGetPCIBusId(bus, sizeof bus, g));
      gpus.found.push_back({properties.name, bus});
    }
    if (count == 0) gpus.why_none = "no GPU is visible";
  } catch (const std::exception& error) {
    gpus = {{}, error.what()};
  }
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

#ifdef __CUDACC__
/// A pool keeps what it has got from the driver, so that a training step asks for nothing new.
void keep_freed_memory(int gpu) {
  cudaMemPool_t pool = nullptr;
  FIVECUTS_CUDA(cudaDeviceGetDefaultMemPool(&pool, gpu));
  std::uint64_t everything = UINT64_MAX;
  FIVECUTS_CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &everything));
}
void give_back_freed_memory(int gpu) {
  cudaMemPool_t pool = nullptr;
  FIVECUTS_CUDA(cudaDeviceGetDefaultMemPool(&pool, gpu));
  FIVECUTS_CUDA(cudaMemPoolTrimTo(pool, 0));
}
#else  // the emulator has no pool to speak of
void keep_freed_memory(int) {}
void give_back_freed_memory(int) {}
#endif

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
  cudaError_t code = cudaMallocAsync(&data, bytes, stream());
  if (code == cudaErrorMemoryAllocation) {  // what is still to be given back may be enough
    static_cast<void>(cudaGetLastError());
    synchronize();
    give_other_lane_time();
    give_back_freed_memory(number_);
    code = cudaMallocAsync(&data, bytes, stream());
  }
  return granted(data, code, "cudaMallocAsync");
}

// Not for ever: the other lane may wait for a peer that waits for this one.
void CudaBackend::give_other_lane_time() {
  using namespace std::chrono_literals;
  const cudaStream_t other = lanes_[lane_() == Lane::compute ? 1 : 0].stream;
  const auto end = std::chrono::steady_clock::now() + 1s;
  while (cudaStreamQuery(other) == cudaErrorNotReady && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  static_cast<void>(cudaGetLastError());  // an error of the device shows where it is waited for
}

void CudaBackend::release(void* data) noexcept { static_cast<void>(cudaFreeAsync(data, stream())); }

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
  for (LaneState& state : lanes_) state.mileposts.clear();  // their events come back to this
  if (std::uncaught_exceptions() > 0) return;  // the process ends, without waiting for peers
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

// Whoever waits for the device for long wants to know that it still works: an event now and then is
// enough, and looking at events stops nothing.
void CudaBackend::launched() {
  constexpr int distance = 4;
  constexpr std::size_t many = 256;
  LaneState& state = lane();
  if (++state.since_milepost < distance) return;
  state.since_milepost = 0;
  Device::Mark here = mark();
  bool look = false;
  {
    const std::lock_guard lock(progress_mutex_);
    state.mileposts.push_back(std::move(here));
    look = state.mileposts.size() > many;
  }
  if (look) static_cast<void>(progress());
}

std::int64_t CudaBackend::progress() {
  const std::lock_guard lock(progress_mutex_);
  for (LaneState& state : lanes_) {
    for (; !state.mileposts.empty() && reached(state.mileposts.front()); ++passed_) {
      state.mileposts.pop_front();
    }
  }
  return passed_;
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
  FIVECUTS_CUDA(
      cudaMemcpyAsync(to.data(), from.data(), bytes_of(to), cudaMemcpyDeviceToDevice, stream()));
}

// CUDA does not promise when it has read memory that is not pinned; no step copies in.
void CudaBackend::copy_in(const void* host, Tensor to) {
  if (to.empty()) return;
  FIVECUTS_CUDA(cudaMemcpyAsync(to.data(), host, bytes_of(to), cudaMemcpyHostToDevice, stream()));
  synchronize();
}

// Waits first, where the wait is watched: the copy itself would wait unseen.
void CudaBackend::copy_out(Tensor from, void* host) {
  if (from.empty()) return;
  synchronize();
  FIVECUTS_CUDA(
      cudaMemcpyAsync(host, from.data(), bytes_of(from), cudaMemcpyDeviceToHost, stream()));
  FIVECUTS_CUDA(cudaStreamSynchronize(stream()));
}

}  // namespace fivecuts
