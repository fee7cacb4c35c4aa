// Errors of the CUDA libraries that no program can bring about at will; for tests alone. In an
// emulated build the linker puts these functions before the libraries' own (--wrap): with "NAME
// RANK" in FIVECUTS_INJECT, NAME fails on that rank.
#include <cuda_runtime.h>
#include <nccl.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

namespace {

bool injected(const std::string& name) {
  const char* wanted = std::getenv("FIVECUTS_INJECT");
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return wanted != nullptr && rank != nullptr && wanted == name + " " + rank;
}

std::atomic<bool> reducing = false;

}  // namespace

extern "C" {

cudaError_t __real_cudaEventQuery(cudaEvent_t event);
cudaError_t __wrap_cudaEventQuery(cudaEvent_t event) {
  if (injected("kernel_error")) return cudaErrorIllegalAddress;
  if (injected("nccl_async_error") && reducing) return cudaErrorNotReady;
  return __real_cudaEventQuery(event);
}

ncclResult_t __real_ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error);
ncclResult_t __wrap_ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  const ncclResult_t result = __real_ncclCommGetAsyncError(comm, error);
  if (injected("nccl_async_error") && reducing) *error = ncclRemoteError;
  return result;
}

ncclResult_t __real_ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                                  ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream);
ncclResult_t __wrap_ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                                  ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  reducing = true;
  return __real_ncclAllReduce(from, to, count, type, operation, comm, stream);
}

ncclResult_t __real_ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank,
                                           ncclConfig_t* config);
ncclResult_t __wrap_ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank,
                                           ncclConfig_t* config) {
  if (injected("nccl_start_error")) return ncclUnhandledCudaError;
  if (injected("nccl_start_late")) std::this_thread::sleep_for(std::chrono::hours(1));
  return __real_ncclCommInitRankConfig(comm, size, id, rank, config);
}

ncclResult_t __real_ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* part,
                                  ncclConfig_t* config);
ncclResult_t __wrap_ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* part,
                                  ncclConfig_t* config) {
  if (injected("nccl_split_late")) std::this_thread::sleep_for(std::chrono::hours(1));
  return __real_ncclCommSplit(comm, color, key, part, config);
}

}  // extern "C"
