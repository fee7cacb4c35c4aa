#pragma once
#include "common/compute/backend.hpp"

namespace fivecuts {

class CpuBackend final : public Backend {
 public:
  void* allocate(std::size_t bytes) override;
  void release(void* data) noexcept override;
  void zero(Tensor to) override;
  void copy(Tensor from, Tensor to) override;
  void copy_in(const void* host, Tensor to) override;
  void copy_out(Tensor from, void* host) override;
  void round_to_bf16(Tensor from, Tensor to) override;
  void add(Tensor to, Tensor from) override;
  void maximum(Tensor to, Tensor from) override;
  void combine_all(std::span<const Tensor> all, bool largest) override;
  void scale(Tensor to, float factor) override;
  void add_bias(Tensor z, Tensor bias) override;
  void bias_gelu(Tensor z, Tensor bias, Tensor y) override;
  void gelu_backward(Tensor z, Tensor dy) override;
  void add_column_sums(Tensor from, Tensor to) override;
  void add_square_sums(Tensor from, Tensor to) override;
  void add_up(Tensor from, Tensor to) override;
  void clip_factor(Tensor squares, float samples, float longest, Tensor norm_and_factor) override;
  void multiply(Tensor a, Tensor b, Tensor c) override;
  void multiply_transposed(Tensor a, Tensor b, Tensor c) override;
  void add_transposed_product(Tensor a, Tensor b, Tensor c) override;
  void softmax_cross_entropy(Tensor logits, Tensor labels, Tensor loss) override;
  void adam(Tensor parameter, Tensor gradient, Tensor m, Tensor v, const AdamStep& step,
            Tensor factor) override;
};

}  // namespace fivecuts
