#pragma once
// What there is of GPUs, as the rank that asks sees it. Private to common/.
#include <string>
#include <vector>

namespace fivecuts {

struct Gpu {
  std::string name;  ///< "NVIDIA H100 80GB HBM3"
  std::string bus;   ///< its place on the machine: two ranks with the same one share it
};
struct Gpus {
  std::vector<Gpu> found;
  std::string why_none;  ///< CUDA's own words, where there are none
};

}  // namespace fivecuts
