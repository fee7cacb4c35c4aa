#include "common/comm/cuda_module.hpp"

#ifdef FIVECUTS_CUDA_MODULE
#include <dlfcn.h>

#include <cstdlib>
#endif

#include <mutex>

// What the module calls itself, in it.
extern "C" fivecuts::CudaModule* fivecuts_cuda_module();

namespace fivecuts {
namespace {

struct Opened {
  CudaModule* module = nullptr;
  std::string why_not;
};

#if defined(FIVECUTS_CUDA_INSIDE)

Opened open_module() { return {fivecuts_cuda_module(), ""}; }

#elif defined(FIVECUTS_CUDA_MODULE)

Opened open_module() {
  // A driver is looked for first: without one the libraries of the toolkit need not be loaded.
  if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    return {nullptr, "there is no NVIDIA driver (libcuda.so.1)"};
  }
  // A kernel that is loaded at its first launch waits for the GPU, which may wait for a peer: all
  // are loaded at the start.
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  // Never closed: what it made lives to the end of the process.
  void* const library = dlopen(FIVECUTS_CUDA_MODULE, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return {nullptr, dlerror()};
  const auto entry = reinterpret_cast<CudaModule* (*)()>(dlsym(library, "fivecuts_cuda_module"));
  if (entry == nullptr) return {nullptr, dlerror()};
  return {entry(), ""};
}

#else

Opened open_module() { return {nullptr, "this build has no CUDA"}; }

#endif

}  // namespace

bool built_with_cuda() {
#if defined(FIVECUTS_CUDA_INSIDE) || defined(FIVECUTS_CUDA_MODULE)
  return true;
#else
  return false;
#endif
}

CudaModule* cuda_module(std::string& why_not) {
  static const Opened opened = open_module();
  why_not = opened.why_not;
  return opened.module;
}

}  // namespace fivecuts
