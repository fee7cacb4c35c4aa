#include "common/comm/device_choice.hpp"

#include <set>

#include "common/comm/cuda_module.hpp"
#include "common/support/error.hpp"

namespace fivecuts {
namespace {

/// What a rank tells the others: the GPU that is to be its own, or why there is none.
struct Offer {
  int gpu = -1, visible = 0;
  bool nccl = false;
  char bus[32] = {}, name[64] = {}, why_none[256] = {};
};

void write(char* to, std::size_t size, const std::string& text) {
  to[text.copy(to, size - 1)] = '\0';
}

/// `place`: this rank's number among those of its machine.
Offer look(int place) {
  Offer offer;
  std::string why;
  CudaModule* const module = cuda_module(why);
  if (module == nullptr) {
    write(offer.why_none, sizeof offer.why_none, why);
    return offer;
  }
  const Gpus gpus = module->gpus();
  write(offer.why_none, sizeof offer.why_none, gpus.why_none);
  if (gpus.found.empty()) return offer;
  offer.visible = static_cast<int>(gpus.found.size());
  offer.gpu = place % offer.visible;
  const Gpu& mine = gpus.found[static_cast<std::size_t>(offer.gpu)];
  write(offer.bus, sizeof offer.bus, mine.bus);
  write(offer.name, sizeof offer.name, mine.name);
  offer.nccl = module->has_nccl();
  return offer;
}

std::vector<Offer> offers_of(Transport& world) {
  int place = 0;
  for (int r = 0; r < world.rank(); ++r) place += world.node(r) == world.node(world.rank()) ? 1 : 0;
  const Offer mine = look(place);
  std::vector<Offer> all;
  for (const auto& bytes : world.all_gather_host(std::as_bytes(std::span(&mine, 1)))) {
    all.push_back(*reinterpret_cast<const Offer*>(bytes.data()));
  }
  return all;
}

/// How the data of ranks with a GPU each, or part of one, goes.
void choose_transport(DeviceChoice& choice, Transport& world, const std::vector<Offer>& offers) {
  std::set<std::pair<int, std::string>> gpus;
  bool nccl = true;
  for (int r = 0; r < world.size(); ++r) {
    const Offer& offer = offers[static_cast<std::size_t>(r)];
    gpus.emplace(world.node(r), offer.bus);
    nccl = nccl && offer.nccl;
  }
  const std::string name = offers.front().name;
  const auto count = gpus.size();
  const std::string ranks = fmt::format("{} rank{}", world.size(), world.size() == 1 ? "" : "s");
  const std::string found = fmt::format("{} GPU{} ({})", count, count == 1 ? "" : "s", name);
  const bool processes = std::string(world.name()) != "threads";
  choice.nccl = nccl && processes && count == static_cast<std::size_t>(world.size());
  const char* const why = choice.nccl ? "a GPU for each rank"
                          : !nccl     ? "this build has no NCCL"
                          : processes ? "NCCL takes one rank on a GPU"
                                      : "NCCL wants a process for each rank";
  choice.reason =
      fmt::format("device cuda, transport {}: {} on {}; {}",
                  choice.nccl ? "nccl" : "staged, by way of the host", ranks, found, why);
}

}  // namespace

DeviceChoice choose_device(Transport& world, DeviceWish wish) {
  DeviceChoice choice;
  if (wish == DeviceWish::cpu || wish == DeviceWish::meta) {
    choice.kind = wish == DeviceWish::cpu ? Device::Kind::cpu : Device::Kind::meta;
    return choice;
  }
  const std::vector<Offer> offers = offers_of(world);
  for (std::size_t r = 0; r < offers.size(); ++r) {
    if (offers[r].visible > 0) continue;
    const std::string why = fmt::format("rank {} finds no GPU: {}", r, offers[r].why_none);
    if (wish == DeviceWish::cuda) {
      throw UsageError(fmt::format("--device cuda is not possible: {}; try: {}", why,
                                   built_with_cuda() ? "--device cpu"
                                                     : "--device cpu, or a build with CUDA: cmake "
                                                       "--preset cuda && cmake --build --preset "
                                                       "cuda"));
    }
    choice.reason = fmt::format("device cpu, transport {}: {}", world.name(), why);
    return choice;
  }
  choice.kind = Device::Kind::cuda;
  choice.gpu = offers[static_cast<std::size_t>(world.rank())].gpu;
  choose_transport(choice, world, offers);
  return choice;
}

}  // namespace fivecuts
