#include "common/compute/operations.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <limits>

#include "common/compute/for_each.hpp"
#include "common/compute/functors.hpp"

namespace fivecuts {
namespace {

using detail::for_each;
using std::int64_t;

// Arithmetic operations an element, an exponential or a root counted as one: what is not a matrix
// product is limited by memory, and no result depends on them.
constexpr double gelu_flops = 10, softmax_flops = 5, adam_flops = 12;

float* f32(Tensor t) { return t.as<float>().data(); }
int64_t* i64(Tensor t) { return t.as<int64_t>().data(); }

void same_count(Tensor a, Tensor b) {
  require(a.count() == b.count() && a.type() == b.type(), "two tensors differ in count or type");
}

/// Books an element-wise operation: `flops` an element of `on`, and the bytes of what it reads and
/// writes. True if there are numbers to compute on.
bool runs(const char* operation, Tensor on, double flops,
          std::initializer_list<Tensor> reads_and_writes) {
  if (on.device() == nullptr) return false;  // no elements either
  Work work;
  work.flops = flops * static_cast<double>(on.count());
  for (const Tensor& t : reads_and_writes) work.bytes += static_cast<double>(t.bytes());
  return on.device()->runs(operation, work);
}

void no_numbers(Tensor of) {
  require(!of.dry(), "a dry tensor has no numbers to look at; --device cpu has");
}

}  // namespace

void zero(Tensor to) {
  if (runs("zero", to, 0, {to}) && !to.empty())
    std::memset(to.data(), 0, static_cast<std::size_t>(to.bytes()));
}

void copy(Tensor from, Tensor to) {
  same_count(from, to);
  if (runs("copy", to, 0, {from, to}) && !to.empty())
    std::memcpy(to.data(), from.data(), static_cast<std::size_t>(to.bytes()));
}

void round_to_bf16(Tensor from, Tensor to) {
  require(from.count() == to.count() && from.type() == DType::f32 && to.type() == DType::bf16,
          "rounding needs f32 and as many bf16");
  if (!runs("round_to_bf16", to, 0, {from, to})) return;
  for_each(1, to.count(),
           detail::RoundToBf16{f32(from), reinterpret_cast<std::uint16_t*>(to.data())});
}

void copy_in(std::span<const float> from, Tensor to) {
  require(static_cast<int64_t>(from.size()) == to.count(), "copy_in needs equal counts");
  if (!from.empty() && !to.dry()) std::memcpy(f32(to), from.data(), from.size_bytes());
}

void copy_in(std::span<const int64_t> from, Tensor to) {
  require(static_cast<int64_t>(from.size()) == to.count(), "copy_in needs equal counts");
  if (!from.empty() && !to.dry()) std::memcpy(i64(to), from.data(), from.size_bytes());
}

std::vector<float> copy_out(Tensor from) {
  const auto values = from.as<float>();
  return {values.begin(), values.end()};
}

std::uint64_t hash(Tensor of) {
  no_numbers(of);
  std::uint64_t h = 0xCBF29CE484222325u ^ static_cast<std::uint64_t>(of.bytes());
  for (int64_t at = 0; at < of.bytes(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, of.data() + at,
                static_cast<std::size_t>(std::min<int64_t>(8, of.bytes() - at)));
    h = (h ^ word) * 0x100000001B3u;
    h ^= h >> 32;
  }
  return h;
}

void add(Tensor to, Tensor from) {
  same_count(to, from);
  if (!runs("add", to, 1, {to, to, from})) return;
  if (to.type() == DType::f32) {
    for_each(1, to.count(), detail::Add<float>{f32(to), f32(from)});
  } else {
    for_each(1, to.count(), detail::Add<int64_t>{i64(to), i64(from)});
  }
}

void scale(Tensor to, float factor) {
  if (runs("scale", to, 1, {to, to})) for_each(1, to.count(), detail::Scale{f32(to), factor});
}

void add_bias(Tensor z, Tensor bias) {
  require(bias.count() == z.cols(), "a bias needs one element for each column");
  if (!runs("add_bias", z, 1, {z, z, bias})) return;
  for_each(z.rows(), z.cols(), detail::AddBias{f32(bias), f32(z), z.cols()});
}

void bias_gelu(Tensor z, Tensor bias, Tensor y) {
  same_count(z, y);
  require(bias.empty() || bias.count() == z.cols(), "a bias needs one element for each column");
  if (!runs("bias_gelu", z, gelu_flops, {z, z, y, bias})) return;
  if (bias.empty()) {
    for_each(z.rows(), z.cols(), detail::BiasGelu<false>{nullptr, f32(z), f32(y), z.cols()});
  } else {
    for_each(z.rows(), z.cols(), detail::BiasGelu<true>{f32(bias), f32(z), f32(y), z.cols()});
  }
}

void gelu_backward(Tensor z, Tensor dy) {
  same_count(z, dy);
  if (!runs("gelu_backward", z, gelu_flops, {z, z, dy})) return;
  for_each(1, z.count(), detail::GeluBackward{f32(dy), f32(z)});
}

void add_column_sums(Tensor from, Tensor to) {
  require(to.count() == from.cols(), "column sums need one element for each column");
  if (!runs("add_column_sums", from, 1, {from, to, to})) return;
  const detail::ColumnSums sums{f32(from), f32(to), from.rows(), from.cols()};
  for_each(1, (from.cols() + sums.width - 1) / sums.width, sums);
}

void softmax_cross_entropy(Tensor logits, Tensor labels, Tensor loss) {
  require(labels.count() == logits.rows() && loss.count() == logits.rows(),
          "the loss needs a label and a place for each row");
  if (!runs("loss", logits, softmax_flops, {logits, logits, labels, loss})) return;
  for (const int64_t label : labels.as<int64_t>()) {
    require(label >= 0 && label < logits.cols(), "a label is not one of the classes");
  }
  for_each(logits.rows(), 1,
           detail::SoftmaxCrossEntropy{f32(logits), i64(labels), f32(loss), logits.cols()});
}

double sum(Tensor of) {
  if (!runs("loss", of, 1, {of})) return of.empty() ? 0 : std::numeric_limits<double>::quiet_NaN();
  double total = 0;
  for (const float value : of.as<float>()) total += static_cast<double>(value);
  return total;
}

int64_t count_equal_argmax(Tensor logits, Tensor labels) {
  require(labels.count() == logits.rows(), "a prediction needs one label for each row");
  const auto values = logits.as<float>();
  int64_t correct = 0;
  for (int64_t r = 0; r < logits.rows(); ++r) {
    const auto row = values.subspan(static_cast<std::size_t>(r * logits.cols()),
                                    static_cast<std::size_t>(logits.cols()));
    const auto best = std::max_element(row.begin(), row.end());
    // A row of NaN, or without classes, predicts nothing; not class 0.
    correct += best != row.end() && !std::isnan(*best) &&
               best - row.begin() == labels.as<int64_t>()[static_cast<std::size_t>(r)];
  }
  return correct;
}

void adam(Tensor parameter, Tensor gradient, Tensor m, Tensor v, const AdamOptions& o, int64_t t,
          float gradient_scale) {
  require(parameter.count() == gradient.count(), "two tensors differ in count or type");
  same_count(parameter, m);
  same_count(parameter, v);
  require(t >= 1, "the steps of Adam count from 1");
  if (!runs("adam", parameter, adam_flops, {parameter, parameter, gradient, m, m, v, v})) return;
  const double step = static_cast<double>(t);
  const double correction1 = 1 - std::pow(static_cast<double>(o.beta1), step);
  const double correction2 = 1 - std::pow(static_cast<double>(o.beta2), step);
  for_each(1, parameter.count(),
           detail::Adam{f32(parameter), f32(gradient), f32(m), f32(v), o.beta1, o.beta2, o.epsilon,
                        gradient_scale,
                        static_cast<float>(static_cast<double>(o.learning_rate) / correction1),
                        static_cast<float>(1 / correction2)});
}

}  // namespace fivecuts
