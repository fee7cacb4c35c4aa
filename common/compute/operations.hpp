#pragma once
// The closed list of things a device computes. Shapes must match exactly; a wrong one is a Failure.
// All matrices are row-major. "x [b, i]" is b rows of i columns.
// Numbers are f32 or bf16, all of an operation in one type unless it says otherwise. What is bf16
// is computed in f32 and rounded once, where it is stored: to the nearest, ties to even.
#include <cstdint>
#include <span>
#include <vector>

#include "common/compute/tensor.hpp"

namespace fivecuts {

// --- moving ---
void zero(Tensor to);
void round_to_bf16(Tensor from, Tensor to);            ///< f32 to bf16
void copy(Tensor from, Tensor to);                     ///< same count and type, no overlap
void copy_in(std::span<const float> from, Tensor to);  ///< from host memory; rounds into bf16
void copy_in(std::span<const std::int64_t> from, Tensor to);
std::vector<float> copy_out(Tensor from);  ///< to host memory; bf16 is widened
std::vector<std::int64_t> copy_out_i64(Tensor from);
std::uint64_t hash(Tensor of);  ///< equal for equal bits and length (FNV-1a over 8-byte words)

// --- element-wise ---
void add(Tensor to, Tensor from);      ///< to += from; i64 too
void maximum(Tensor to, Tensor from);  ///< to = the larger of both; i64 too
/// Each of `all` becomes the sum of all of them, added in their order; or the largest. i64 too. All
/// are read and written once, whatever their number; no two of them overlap.
void add_all(std::span<const Tensor> all);
void maximum_all(std::span<const Tensor> all);
void scale(Tensor to, float factor);
void add_bias(Tensor z, Tensor bias);             ///< z [b, o] += bias [o]
void bias_gelu(Tensor z, Tensor bias, Tensor y);  ///< z += bias (may be empty), y = gelu(z)
void gelu_backward(Tensor z, Tensor dy);          ///< z = dy * gelu'(z)
/// to [o] += the sums over rows of from [b, o]; each in a type of its own
void add_column_sums(Tensor from, Tensor to);
/// to [s] += sums of squares, s of them, in f32: that of element i goes to sum i mod s. Their
/// number is for the device: a GPU computes each in a thread of its own.
void add_square_sums(Tensor from, Tensor to);
void add_up(Tensor from, Tensor to);  ///< to [1] = the sum of all, from first to last
/// The norm of a mean gradient, from the `squares` of its sum over `samples`, and the factor, at most
/// 1, that makes it `longest` long; both stay on the device, so that nobody waits for them.
void clip_factor(Tensor squares, std::int64_t samples, float longest, Tensor norm_and_factor);

// --- matrix products (Eigen, or the BLAS it was built with) ---
// c may be f32 where a and b are bf16.
void multiply(Tensor a, Tensor b, Tensor c);             ///< c [m, n] = a [m, k] b [k, n]
void multiply_transposed(Tensor a, Tensor b, Tensor c);  ///< c [m, n] = a [m, k] b^T, b is [n, k]
/// c [m, n] += a^T b, a is [k, m], b [k, n]
void add_transposed_product(Tensor a, Tensor b, Tensor c);

// --- loss and optimizer ---
/// logits [b, classes] become d loss / d logits of the *sum* of losses; loss [b] holds a loss per
/// row, in f32. labels [b] are i64 in [0, classes).
void softmax_cross_entropy(Tensor logits, Tensor labels, Tensor loss);
double sum(Tensor of);
/// Rows whose largest logit is the label's.
std::int64_t count_equal_argmax(Tensor logits, Tensor labels);

struct AdamOptions {
  float learning_rate = 1e-3f, beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
};
/// Step `t` (1, 2, ...) over equal spans; m and v start as zeros. The gradient is multiplied by
/// `gradient_scale` on the way, which saves the pass that a division by the batch size would cost.
/// And by `factor` [1], if there is one, which the host need not know. Parameters and gradient are
/// each f32 or bf16, m and v are f32.
void adam(Tensor parameter, Tensor gradient, Tensor m, Tensor v, const AdamOptions& options,
          std::int64_t t, float gradient_scale, Tensor factor = {});

}  // namespace fivecuts
