#pragma once
// What both files of this chapter's tests need.
#include "ch01_overview/placement.hpp"
#include "common/support/test_main.hpp"

namespace fivecuts::overview {

inline ModelShape square_layers(std::int64_t layers, std::int64_t width, bool bias = false) {
  return mlp_shape(width, width, width, static_cast<int>(layers), bias);
}

/// How often an element has to be held, by what the cut copies.
inline int copies(Cut cut, Part Holding::*kind, const LayerShape& layer, std::size_t number,
                  std::int64_t element, int experts, int n) {
  const bool bias = element >= layer.in * layer.out;
  switch (cut) {
    case Cut::data:
      return n;
    case Cut::pipeline:
      return 1;
    case Cut::tensor:
      return bias && number % 2 == 1 ? n : 1;
    case Cut::expert:
      return number % (static_cast<std::size_t>(experts) + 1) == 0 ? n : 1;
    case Cut::zero1:
      return kind == &Holding::optimizer ? 1 : n;
    case Cut::zero2:
      return kind == &Holding::parameters ? n : 1;
    case Cut::zero3:
      return 1;
  }
  return -1;
}

}  // namespace fivecuts::overview
