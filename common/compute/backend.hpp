#pragma once
// What a kind of device does with its own memory: the arithmetic behind operations.hpp, which has
// checked the shapes and booked the work before. A `meta` device has no backend. Private to
// common/compute.
#include <cstddef>
#include <memory>
#include <span>

#include "common/compute/tensor.hpp"

namespace fivecuts {

struct AdamStep {
  float beta1, beta2, epsilon;
  float gradient_scale;  ///< multiplies the gradient before it is used
  float step_size;       ///< learning rate / (1 - beta1^t)
  float v_correction;    ///< 1 / (1 - beta2^t)
};

class Backend : public MemorySource {
 public:
  /// True if a freed block is quickly had again: then nobody need keep it.
  virtual bool pools_memory() const { return false; }
  /// Where blocks of host memory come from that the device copies to and from at full speed.
  virtual MemorySource& host_memory() { return *this; }

  // --- order (see Device): nothing, where all is done when the call returns ---
  virtual Device::Mark mark() { return nullptr; }
  virtual void follow(const Device::Mark&) {}
  virtual void synchronize() {}
  virtual void wait_by(Device::Wait) {}
  virtual std::int64_t host_waits() const { return 0; }
  virtual std::int64_t progress() { return 0; }

  // --- moving ---
  virtual void zero(Tensor to) = 0;
  virtual void copy(Tensor from, Tensor to) = 0;
  virtual void copy_in(const void* host, Tensor to) = 0;  ///< `host` may change when it returns
  virtual void copy_out(Tensor from, void* host) = 0;     ///< all is there when it returns
  virtual void round_to_bf16(Tensor from, Tensor to) = 0;

  // --- element-wise ---
  virtual void add(Tensor to, Tensor from) = 0;
  virtual void maximum(Tensor to, Tensor from) = 0;
  /// Each of `all` becomes the sum, or the maximum, of all of them.
  virtual void combine_all(std::span<const Tensor> all, bool largest) {
    for (const Tensor& t : all.subspan(1)) largest ? maximum(all[0], t) : add(all[0], t);
    for (const Tensor& t : all.subspan(1)) copy(all[0], t);
  }
  virtual void scale(Tensor to, float factor) = 0;
  virtual void add_bias(Tensor z, Tensor bias) = 0;
  virtual void bias_gelu(Tensor z, Tensor bias, Tensor y) = 0;
  virtual void gelu_backward(Tensor z, Tensor dy) = 0;
  virtual void add_column_sums(Tensor from, Tensor to) = 0;
  virtual void add_square_sums(Tensor from, Tensor to) = 0;
  virtual void add_up(Tensor from, Tensor to) = 0;
  virtual void clip_factor(Tensor squares, float samples, float longest,
                           Tensor norm_and_factor) = 0;

  // --- matrix products ---
  virtual void multiply(Tensor a, Tensor b, Tensor c) = 0;
  virtual void multiply_transposed(Tensor a, Tensor b, Tensor c) = 0;
  virtual void add_transposed_product(Tensor a, Tensor b, Tensor c) = 0;

  // --- loss and optimizer ---
  virtual void softmax_cross_entropy(Tensor logits, Tensor labels, Tensor loss) = 0;
  virtual void adam(Tensor parameter, Tensor gradient, Tensor m, Tensor v, const AdamStep& step,
                    Tensor factor) = 0;
};

/// The cpu's, one for all ranks of a process.
Backend& cpu_backend();

}  // namespace fivecuts
