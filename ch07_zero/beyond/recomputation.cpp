#include "ch07_zero/beyond/beyond.hpp"

namespace fivecuts::zero_redundancy {

// What the layer put out is the next one's input. Where that is z itself, there is nothing to drop.
void Recomputation::after_forward(std::size_t k, Saved& saved) {
  Trainer::after_forward(k, saved);
  if (saved.y.tensor().device() != nullptr) saved.z = Buffer();
}

void Recomputation::backward(std::size_t k, Saved& saved, Tensor dy, Tensor dx, bool last) {
  if (saved.z.tensor().device() == nullptr) {
    gather(k);
    if (settings_.prefetch && k > 0) start_gather(k - 1);
    // Beside the old one: the last layer's output holds dy by now.
    Saved again(device_, layers_[k].shape, saved.x.rows(), settings_.precision);
    fivecuts::forward(layers_[k].shape, weights(k), saved.x, again);
    saved.z = std::move(again.z);
  }
  Trainer::backward(k, saved, dy, dx, last);
}

}  // namespace fivecuts::zero_redundancy
