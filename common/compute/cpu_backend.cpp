// The element-wise operations on the cpu; the matrix products are in cpu_products.cpp.
#include "common/compute/cpu_backend.hpp"

#include <algorithm>
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

template <class T>
T* elements(Tensor t) {
  return t.as<T>().data();
}

/// f(its elements), in the type in which they are stored: float or Bf16.
template <class F>
void as_stored(Tensor t, const F& f) {
  if (t.type() == DType::bf16) {
    f(elements<Bf16>(t));
  } else {
    f(elements<float>(t));
  }
}

std::size_t bytes_of(Tensor t) { return static_cast<std::size_t>(t.bytes()); }

}  // namespace

void* CpuBackend::allocate(std::size_t bytes) {
  const bool huge = bytes >= huge_page;
  void* data = std::aligned_alloc(huge ? huge_page : alignment, bytes);
  if (data == nullptr) throw std::bad_alloc();
#ifdef __linux__
  if (huge) madvise(data, bytes, MADV_HUGEPAGE);
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  // Fresh memory that nobody wrote must not pass for zeros: all-ones bytes are NaN.
  std::memset(data, 0xFF, bytes);
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

void CpuBackend::copy_out(Tensor from, void* host) {
  if (!from.empty()) std::memcpy(host, from.data(), bytes_of(from));
}

void CpuBackend::round_to_bf16(Tensor from, Tensor to) {
  for_each(1, to.count(), detail::RoundToBf16<>{elements<float>(from), elements<Bf16>(to)});
}

void CpuBackend::add(Tensor to, Tensor from) {
  const auto add_as = [&]<class T>(T* into) {
    for_each(1, to.count(), detail::Add<T>{into, elements<T>(from)});
  };
  if (to.type() == DType::i64) return add_as(elements<int64_t>(to));
  as_stored(to, add_as);
}

void CpuBackend::maximum(Tensor to, Tensor from) {
  const auto maximum_as = [&]<class T>(T* into) {
    for_each(1, to.count(), detail::Maximum<T>{into, elements<T>(from)});
  };
  if (to.type() == DType::i64) return maximum_as(elements<int64_t>(to));
  as_stored(to, maximum_as);
}

namespace {
/// A block of all of them at a time, so that it stays in the cache from its reading to its writing.
/// bf16 is combined in float and rounded once.
template <class T>
void combine_all_as(std::span<const Tensor> all, bool largest) {
  using Number = std::conditional_t<std::is_same_v<T, Bf16>, float, T>;
  constexpr int64_t block = 1024;
  alignas(64) Number numbers[block];
  for (int64_t first = 0; first < all[0].count(); first += block) {
    const int64_t count = std::min(block, all[0].count() - first);
    std::copy_n(elements<T>(all[0]) + first, count, numbers);
    for (const Tensor& t : all.subspan(1)) {
      const T* next = elements<T>(t) + first;
      if (largest) {
        for_each(1, count, detail::Maximum<Number, T>{numbers, next});
      } else {
        for_each(1, count, detail::Add<Number, T>{numbers, next});
      }
    }
    for (const Tensor& t : all) std::copy_n(numbers, count, elements<T>(t) + first);
  }
}
}  // namespace

void CpuBackend::combine_all(std::span<const Tensor> all, bool largest) {
  if (all[0].type() == DType::i64) return combine_all_as<int64_t>(all, largest);
  as_stored(all[0], [&]<class T>(T*) { combine_all_as<T>(all, largest); });
}

void CpuBackend::scale(Tensor to, float factor) {
  as_stored(to, [&]<class T>(T* t) { for_each(1, to.count(), detail::Scale<T>{t, factor}); });
}

void CpuBackend::add_bias(Tensor z, Tensor bias) {
  as_stored(z, [&]<class T>(T* sums) {
    for_each(z.rows(), z.cols(), detail::AddBias<T>{elements<T>(bias), sums, z.cols()});
  });
}

void CpuBackend::bias_gelu(Tensor z, Tensor bias, Tensor y) {
  as_stored(z, [&]<class T>(T* sums) {
    T* out = elements<T>(y);
    if (bias.empty()) {
      for_each(z.rows(), z.cols(), detail::BiasGelu<T, false>{nullptr, sums, out, z.cols()});
    } else {
      const T* biases = elements<T>(bias);
      for_each(z.rows(), z.cols(), detail::BiasGelu<T, true>{biases, sums, out, z.cols()});
    }
  });
}

void CpuBackend::gelu_backward(Tensor z, Tensor dy) {
  as_stored(z, [&]<class T>(T* in_out) {
    for_each(1, z.count(), detail::GeluBackward<T>{elements<T>(dy), in_out});
  });
}

void CpuBackend::add_column_sums(Tensor from, Tensor to) {
  as_stored(from, [&]<class From>(const From* summands) {
    as_stored(to, [&]<class To>(To* into) {
      const detail::ColumnSums<From, To> sums{summands, into, from.rows(), from.cols()};
      for_each(1, (from.cols() + sums.width - 1) / sums.width, sums);
    });
  });
}

void CpuBackend::add_square_sums(Tensor from, Tensor to) {
  as_stored(from, [&]<class From>(const From* numbers) {
    const detail::SquareSums<From> squares{numbers, elements<float>(to), from.count(), to.count()};
    for_each(1, (to.count() + squares.width - 1) / squares.width, squares);
  });
}

void CpuBackend::add_up(Tensor from, Tensor to) {
  for_each(1, 1, detail::AddUp{elements<float>(from), elements<float>(to), from.count()});
}

void CpuBackend::clip_factor(Tensor squares, float samples, float longest, Tensor result) {
  for_each(1, 1,
           detail::ClipFactor{elements<float>(squares), elements<float>(result), squares.count(),
                              samples, longest});
}

void CpuBackend::softmax_cross_entropy(Tensor logits, Tensor labels, Tensor loss) {
  for (const int64_t label : labels.as<int64_t>()) {
    require(label >= 0 && label < logits.cols(), "a label is not one of the classes");
  }
  as_stored(logits, [&]<class T>(T* rows) {
    const detail::SoftmaxCrossEntropy<T> softmax{rows, elements<int64_t>(labels),
                                                 elements<float>(loss), logits.cols()};
    for_each(logits.rows(), 1, softmax);
  });
}

void CpuBackend::adam(Tensor parameter, Tensor gradient, Tensor m, Tensor v, const AdamStep& step,
                      Tensor factor) {
  AdamStep s = step;
  if (!factor.empty()) s.gradient_scale *= factor.as<float>()[0];
  as_stored(parameter, [&]<class P>(P* p) {
    as_stored(gradient, [&]<class G>(const G* g) {
      const detail::Adam<P, G> update{p, g, elements<float>(m), elements<float>(v), s};
      for_each(1, parameter.count(), update);
    });
  });
}

Backend& cpu_backend() {
  static CpuBackend backend;  // holds nothing: all its memory belongs to the devices
  return backend;
}

}  // namespace fivecuts
