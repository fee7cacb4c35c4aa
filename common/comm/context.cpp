#include "common/comm/context.hpp"

#include <thread>

#include "common/comm/cuda_module.hpp"
#include "common/comm/transport_staged.hpp"

namespace fivecuts {
namespace {

CudaModule& module() {
  std::string why;
  CudaModule* const module = cuda_module(why);
  require(module != nullptr, "there is no CUDA here: choose_device() says so before");
  return *module;
}

std::shared_ptr<Backend> backend_of(const CommonOptions& chosen) {
  if (chosen.device != Device::Kind::cuda) return nullptr;
  return module().backend(chosen.gpu, lane_of_this_thread);
}

}  // namespace

Context::Context(std::unique_ptr<Transport> host, const CommonOptions& chosen)
    : options(chosen),
      clock(chosen.cluster),
      memory(chosen.memory_cap),
      device(memory, chosen.device, &clock, backend_of(chosen)),
      guard(host->rank(), host->size(), chosen.timeout_s, chosen.guard),
      world("world", transport_over(std::move(host)), observers()) {
  device.wait_by([this](const std::function<bool()>& done) { wait_for_device(done); });
}

std::unique_ptr<Transport> Context::transport_over(std::unique_ptr<Transport> host) {
  if (options.device != Device::Kind::cuda) return host;
  if (!options.nccl) return staged_transport(std::move(host), device);
  const auto watch = guard.watch([] { return "the others to start NCCL"; });
  return module().nccl(std::move(host), *device.backend());
}

// The host asks again and again, so that a peer that never comes, or a communicator that broke,
// ends the run with a sentence and not in a call that never returns.
void Context::wait_for_device(const std::function<bool()>& done) {
  using namespace std::chrono_literals;
  if (done()) return;
  std::string waits_for = world.transport().under_way();
  std::int64_t got_to = device.progress();
  Guard::Watch watch = guard.watch([&] { return waits_for; });
  auto looked = std::chrono::steady_clock::now();
  while (!done()) {
    std::this_thread::yield();
    const auto now = std::chrono::steady_clock::now();
    if (now - looked < 100ms) continue;
    looked = now;
    const std::int64_t got = device.progress();
    if (std::string next = world.transport().under_way(); next != waits_for || got != got_to) {
      waits_for = std::move(next);
      got_to = got;
      watch.now(waits_for);
      guard.progress();
    }
  }
}

}  // namespace fivecuts
