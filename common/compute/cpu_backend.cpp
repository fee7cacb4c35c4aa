// The element-wise operations on the cpu; the matrix products are in cpu_products.cpp.
#include "common/compute/cpu_backend.hpp"

#include <cstdlib>
#include <cstring>
#include <new>
#ifdef __linux__
#include <sys/mman.h>
#endif

#include "common/compute/for_each.hpp"
#include "common/compute/functors.hpp"

namespace fivecuts {
namespace {

using detail::for_each;
using std::int64_t;

constexpr std::size_t alignment = 256, huge_page = std::size_t{2} << 20;

float* f32(Tensor t) { return t.as<float>().data(); }
int64_t* i64(Tensor t) { return t.as<int64_t>().data(); }
std::size_t bytes_of(Tensor t) { return static_cast<std::size_t>(t.bytes()); }

}  // namespace

void* CpuBackend::allocate(std::size_t bytes) {
  const bool huge = bytes >= huge_page;
  void* data = std::aligned_alloc(huge ? huge_page : alignment, bytes);
  if (data == nullptr) throw std::bad_alloc();
#ifdef __linux__
  if (huge) madvise(data, bytes, MADV_HUGEPAGE);
#endif
  return data;
}

void CpuBackend::release(void* data) noexcept { std::free(data); }

void CpuBackend::zero(Tensor to) {
  if (!to.empty()) std::memset(to.data(), 0, bytes_of(to));
}

void CpuBackend::copy(Tensor from, Tensor to) {
  if (!to.empty()) std::memcpy(to.data(), from.data(), bytes_of(to));
}

void CpuBackend::copy_in(const void* host, Tensor to) {
  if (!to.empty()) std::memcpy(to.data(), host, bytes_of(to));
}

void CpuBackend::copy_out(Tensor from, void* host) const {
  if (!from.empty()) std::memcpy(host, from.data(), bytes_of(from));
}

void CpuBackend::round_to_bf16(Tensor from, Tensor to) {
  for_each(1, to.count(),
           detail::RoundToBf16{f32(from), reinterpret_cast<std::uint16_t*>(to.data())});
}

void CpuBackend::add(Tensor to, Tensor from) {
  if (to.type() == DType::i64) {
    for_each(1, to.count(), detail::Add<int64_t>{i64(to), i64(from)});
  } else {
    for_each(1, to.count(), detail::Add<float>{f32(to), f32(from)});
  }
}

void CpuBackend::scale(Tensor to, float factor) {
  for_each(1, to.count(), detail::Scale{f32(to), factor});
}

void CpuBackend::add_bias(Tensor z, Tensor bias) {
  for_each(z.rows(), z.cols(), detail::AddBias{f32(bias), f32(z), z.cols()});
}

void CpuBackend::bias_gelu(Tensor z, Tensor bias, Tensor y) {
  if (bias.empty()) {
    for_each(z.rows(), z.cols(), detail::BiasGelu<false>{nullptr, f32(z), f32(y), z.cols()});
  } else {
    for_each(z.rows(), z.cols(), detail::BiasGelu<true>{f32(bias), f32(z), f32(y), z.cols()});
  }
}

void CpuBackend::gelu_backward(Tensor z, Tensor dy) {
  for_each(1, z.count(), detail::GeluBackward{f32(dy), f32(z)});
}

void CpuBackend::add_column_sums(Tensor from, Tensor to) {
  const detail::ColumnSums sums{f32(from), f32(to), from.rows(), from.cols()};
  for_each(1, (from.cols() + sums.width - 1) / sums.width, sums);
}

void CpuBackend::softmax_cross_entropy(Tensor logits, Tensor labels, Tensor loss) {
  for (const int64_t label : labels.as<int64_t>()) {
    require(label >= 0 && label < logits.cols(), "a label is not one of the classes");
  }
  for_each(logits.rows(), 1,
           detail::SoftmaxCrossEntropy{f32(logits), i64(labels), f32(loss), logits.cols()});
}

void CpuBackend::adam(Tensor parameter, Tensor gradient, Tensor m, Tensor v, const AdamStep& s) {
  for_each(1, parameter.count(), detail::Adam{f32(parameter), f32(gradient), f32(m), f32(v), s});
}

Backend& cpu_backend() {
  static CpuBackend backend;  // holds nothing: all its memory belongs to the devices
  return backend;
}

}  // namespace fivecuts
