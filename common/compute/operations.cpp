// Checks shapes, books the work, and hands it to the device's backend.
#include "common/compute/operations.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <limits>

#include "common/compute/backend.hpp"

namespace fivecuts {
namespace {

using std::int64_t;

// Arithmetic operations an element, an exponential or a root counted as one: what is not a matrix
// product is limited by memory, and no result depends on them.
constexpr double gelu_flops = 10, softmax_flops = 5, adam_flops = 12;

void same_count(Tensor a, Tensor b) {
  require(a.count() == b.count() && a.type() == b.type(), "two tensors differ in count or type");
}

/// Books an element-wise operation: `flops` an element of `on`, and the bytes of what it reads and
/// writes. Returns who computes it; nobody, where there are no numbers.
Backend* book(const char* operation, Tensor on, double flops,
              std::initializer_list<Tensor> reads_and_writes) {
  if (on.device() == nullptr) return nullptr;  // no elements either
  Work work;
  work.flops = flops * static_cast<double>(on.count());
  for (const Tensor& t : reads_and_writes) work.bytes += static_cast<double>(t.bytes());
  return on.device()->book(operation, work);
}

/// Likewise c [m, n] = a product of two matrices with `k` in common; that of bf16 may be kept in
/// f32.
Backend* book_product(bool shapes_match, int64_t k, Tensor a, Tensor b, Tensor c) {
  require(shapes_match, "the shapes of a matrix product do not match");
  const bool widened = a.type() == DType::bf16 && c.type() == DType::f32;
  require(a.type() == b.type() && (a.type() == c.type() || widened),
          "a matrix product of two types");
  if (c.device() == nullptr) return nullptr;
  Work work;
  work.flops = 2 * static_cast<double>(c.count()) * static_cast<double>(k);
  work.bytes = static_cast<double>(a.bytes() + b.bytes() + c.bytes());
  work.thinnest = std::max<int64_t>(1, std::min({c.rows(), c.cols(), k}));
  work.half = a.type() == DType::bf16;
  return c.device()->book("product", work);
}

/// All bytes of a tensor, in host memory.
std::vector<std::byte> bytes_out(Tensor from) {
  require(!from.dry(), "a dry tensor has no numbers to look at; --device cpu has");
  std::vector<std::byte> bytes(static_cast<std::size_t>(from.bytes()));
  if (!bytes.empty()) from.device()->backend()->copy_out(from, bytes.data());
  return bytes;
}

template <class T>
std::vector<T> values_out(Tensor from) {
  if (from.type() != dtype_of<T>()) from.wrong_type(dtype_of<T>());
  const std::vector<std::byte> bytes = bytes_out(from);
  std::vector<T> values(static_cast<std::size_t>(from.count()));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

template <class T>
void values_in(std::span<const T> from, Tensor to) {
  require(static_cast<int64_t>(from.size()) == to.count(), "copy_in needs equal counts");
  if (to.type() != dtype_of<T>()) to.wrong_type(dtype_of<T>());
  if (!from.empty() && !to.dry()) to.device()->backend()->copy_in(from.data(), to);
}

}  // namespace

void zero(Tensor to) {
  if (Backend* b = book("zero", to, 0, {to})) b->zero(to);
}

void copy(Tensor from, Tensor to) {
  same_count(from, to);
  if (Backend* b = book("copy", to, 0, {from, to})) b->copy(from, to);
}

void round_to_bf16(Tensor from, Tensor to) {
  require(from.count() == to.count() && from.type() == DType::f32 && to.type() == DType::bf16,
          "rounding needs f32 and as many bf16");
  if (Backend* b = book("round_to_bf16", to, 0, {from, to})) b->round_to_bf16(from, to);
}

void copy_in(std::span<const float> from, Tensor to) {
  if (to.type() != DType::bf16) return values_in(from, to);
  const std::vector<Bf16> rounded(from.begin(), from.end());
  values_in(std::span<const Bf16>(rounded), to);
}
void copy_in(std::span<const int64_t> from, Tensor to) { values_in(from, to); }
std::vector<float> copy_out(Tensor from) {
  if (from.type() != DType::bf16) return values_out<float>(from);
  const std::vector<Bf16> values = values_out<Bf16>(from);
  return {values.begin(), values.end()};
}

std::vector<int64_t> copy_out_i64(Tensor from) { return values_out<int64_t>(from); }

std::uint64_t hash(Tensor of) {
  const std::vector<std::byte> bytes = bytes_out(of);
  std::uint64_t h = 0xCBF29CE484222325u ^ bytes.size();
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, &bytes[at], std::min<std::size_t>(8, bytes.size() - at));
    h = (h ^ word) * 0x100000001B3u;
    h ^= h >> 32;
  }
  return h;
}

void add(Tensor to, Tensor from) {
  same_count(to, from);
  if (Backend* b = book("add", to, 1, {to, to, from})) b->add(to, from);
}

void maximum(Tensor to, Tensor from) {
  same_count(to, from);
  if (Backend* b = book("maximum", to, 1, {to, to, from})) b->maximum(to, from);
}

namespace {
void combine_all(const char* operation, std::span<const Tensor> all, bool largest) {
  if (all.size() < 2) return;
  for (const Tensor& t : all) same_count(all[0], t);
  if (all[0].device() == nullptr) return;
  const auto others = static_cast<double>(all.size() - 1);
  Work work;
  work.flops = others * static_cast<double>(all[0].count());
  work.bytes = 2 * (others + 1) * static_cast<double>(all[0].bytes());
  Backend* const b = all[0].device()->book(operation, work);
  if (b != nullptr) b->combine_all(all, largest);
}
}  // namespace

void add_all(std::span<const Tensor> all) { combine_all("add_all", all, false); }
void maximum_all(std::span<const Tensor> all) { combine_all("maximum_all", all, true); }

void scale(Tensor to, float factor) {
  if (Backend* b = book("scale", to, 1, {to, to})) b->scale(to, factor);
}

void add_bias(Tensor z, Tensor bias) {
  require(bias.count() == z.cols(), "a bias needs one element for each column");
  if (Backend* b = book("add_bias", z, 1, {z, z, bias})) b->add_bias(z, bias);
}

void bias_gelu(Tensor z, Tensor bias, Tensor y) {
  same_count(z, y);
  require(bias.empty() || bias.count() == z.cols(), "a bias needs one element for each column");
  const Tensor written = bias.empty() ? Tensor() : z;
  if (Backend* b = book("bias_gelu", z, gelu_flops, {z, written, y, bias})) {
    b->bias_gelu(z, bias, y);
  }
}

void gelu_backward(Tensor z, Tensor dy) {
  same_count(z, dy);
  if (Backend* b = book("gelu_backward", z, gelu_flops, {z, z, dy})) b->gelu_backward(z, dy);
}

void add_column_sums(Tensor from, Tensor to) {
  require(to.count() == from.cols(), "column sums need one element for each column");
  if (Backend* b = book("add_column_sums", from, 1, {from, to, to})) b->add_column_sums(from, to);
}

void add_square_sums(Tensor from, Tensor to) {
  require(to.type() == DType::f32 && !to.empty(), "sums of squares are f32, and one at least");
  if (Backend* b = book("add_square_sums", from, 2, {from, to, to})) b->add_square_sums(from, to);
}

void add_up(Tensor from, Tensor to) {
  require(to.type() == DType::f32 && to.count() == 1, "a sum is one f32");
  require(from.type() == DType::f32 && !from.empty(), "what is added up is f32, and one at least");
  if (Backend* b = book("add_up", from, 1, {from, to})) b->add_up(from, to);
}

void clip_factor(Tensor squares, std::int64_t samples, float longest, Tensor norm_and_factor) {
  require(norm_and_factor.type() == DType::f32 && norm_and_factor.count() == 2,
          "a norm and its factor are two f32");
  require(samples > 0, "there is no mean gradient over no samples");
  if (Backend* b = book("clip_factor", squares, 1, {squares, norm_and_factor})) {
    b->clip_factor(squares, static_cast<float>(samples), longest, norm_and_factor);
  }
}

void multiply(Tensor a, Tensor b, Tensor c) {
  const bool match = a.cols() == b.rows() && c.rows() == a.rows() && c.cols() == b.cols();
  if (Backend* backend = book_product(match, a.cols(), a, b, c)) backend->multiply(a, b, c);
}

void multiply_transposed(Tensor a, Tensor b, Tensor c) {
  const bool match = a.cols() == b.cols() && c.rows() == a.rows() && c.cols() == b.rows();
  if (Backend* backend = book_product(match, a.cols(), a, b, c)) {
    backend->multiply_transposed(a, b, c);
  }
}

void add_transposed_product(Tensor a, Tensor b, Tensor c) {
  const bool match = a.rows() == b.rows() && c.rows() == a.cols() && c.cols() == b.cols();
  if (Backend* backend = book_product(match, a.rows(), a, b, c)) {
    backend->add_transposed_product(a, b, c);
  }
}

void softmax_cross_entropy(Tensor logits, Tensor labels, Tensor loss) {
  require(labels.count() == logits.rows() && loss.count() == logits.rows(),
          "the loss needs a label and a place for each row");
  if (Backend* b = book("loss", logits, softmax_flops, {logits, logits, labels, loss})) {
    b->softmax_cross_entropy(logits, labels, loss);
  }
}

double sum(Tensor of) {
  if (book("loss", of, 1, {of}) == nullptr) {
    return of.empty() ? 0 : std::numeric_limits<double>::quiet_NaN();
  }
  double total = 0;
  for (const float value : copy_out(of)) total += static_cast<double>(value);
  return total;
}

int64_t count_equal_argmax(Tensor logits, Tensor labels) {
  require(labels.count() == logits.rows(), "a prediction needs one label for each row");
  const std::vector<float> values = copy_out(logits);
  const std::vector<int64_t> wanted = copy_out_i64(labels);
  int64_t correct = 0;
  for (int64_t r = 0; r < logits.rows(); ++r) {
    const auto row = std::span(values).subspan(static_cast<std::size_t>(r * logits.cols()),
                                               static_cast<std::size_t>(logits.cols()));
    const auto best = std::max_element(row.begin(), row.end());
    // A row of NaN, or without classes, predicts nothing; not class 0.
    correct += best != row.end() && !std::isnan(*best) &&
               best - row.begin() == wanted[static_cast<std::size_t>(r)];
  }
  return correct;
}

void adam(Tensor parameter, Tensor gradient, Tensor m, Tensor v, const AdamOptions& o, int64_t t,
          float gradient_scale, Tensor factor) {
  require(parameter.count() == gradient.count() && parameter.count() == m.count(),
          "the parameters, gradients and moments of Adam differ in count");
  require(m.type() == DType::f32, "the moments of Adam are f32");
  same_count(m, v);
  require(t >= 1, "the steps of Adam count from 1");
  require(factor.empty() || (factor.type() == DType::f32 && factor.count() == 1),
          "the factor of Adam is one f32");
  const double steps = static_cast<double>(t);
  const double correction1 = 1 - std::pow(static_cast<double>(o.beta1), steps);
  const double correction2 = 1 - std::pow(static_cast<double>(o.beta2), steps);
  const AdamStep step{o.beta1,
                      o.beta2,
                      o.epsilon,
                      gradient_scale,
                      static_cast<float>(static_cast<double>(o.learning_rate) / correction1),
                      static_cast<float>(1 / correction2)};
  Backend* b = book("adam", parameter, adam_flops, {parameter, parameter, gradient, m, m, v, v});
  if (b != nullptr) b->adam(parameter, gradient, m, v, step, factor);
}

}  // namespace fivecuts
