#pragma once
// What the tests of clock, ledgers and dry runs share.
#include "common/comm/world.hpp"
#include "common/tests/helpers.hpp"

namespace fivecuts {

inline CommonOptions with(Cluster cluster, Device::Kind device = Device::Kind::cpu) {
  CommonOptions options;
  options.cluster = std::move(cluster);
  options.device = device;
  return options;
}

/// An operation of so many FLOP.
inline void compute(Context& context, double flops) {
  context.device.book("work", {.flops = flops});
}

inline Buffer floats(Context& context, std::int64_t count) {
  return {context.device, Category::workspace, 1, count};
}

}  // namespace fivecuts
