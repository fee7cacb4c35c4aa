// The element-wise operations of a GPU: the functors of the cpu, a thread an element.
#include <algorithm>

#include "common/compute/cuda_backend.hpp"
#include "common/compute/functors.hpp"

namespace fivecuts {

using std::int64_t;

namespace {

/// f(row, col) for every element, whatever the size of the grid.
template <class Functor>
__global__ void for_each_kernel(int64_t rows, int64_t cols, Functor f) {
  for (int64_t r = blockIdx.y; r < rows; r += gridDim.y) {
    const int64_t threads = static_cast<int64_t>(gridDim.x) * blockDim.x;
    int64_t c = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    for (; c < cols; c += threads) f(r, c);
  }
}

template <class T>
T* elements(Tensor t) {
  if (t.type() != dtype_of<T>()) t.wrong_type(dtype_of<T>());
  return reinterpret_cast<T*>(t.data());
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

/// A functor that works on whole rows, one for each thread.
template <class F>
struct ByRow {
  F f;
  FIVECUTS_HD void operator()(int64_t, int64_t row) const { f(row, 0); }
};

/// Adam with a factor that the host does not know.
template <class Adam>
struct WithFactor {
  Adam adam;
  const float* factor;
  FIVECUTS_HD void operator()(int64_t row, int64_t col) const {
    Adam update = adam;
    update.step.gradient_scale *= *factor;
    update(row, col);
  }
};

}  // namespace

template <class Functor>
void CudaBackend::for_each(int64_t rows, int64_t cols, const Functor& f) {
  if (rows == 0 || cols == 0) return;
  constexpr int64_t block = 256;
  const int64_t most = int64_t{8} * processors_;  // blocks that a GPU can hold at once
  const int64_t across = std::min((cols + block - 1) / block, most);
  const int64_t down = std::clamp<int64_t>(most / across, 1, std::min<int64_t>(rows, 65535));
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(across), static_cast<unsigned>(down));
  config.blockDim = dim3(block);
  config.stream = stream();
  check_cuda(cudaLaunchKernelEx(&config, for_each_kernel<Functor>, rows, cols, f),
             "the launch of a kernel");
  launched();
}

void CudaBackend::round_to_bf16(Tensor from, Tensor to) {
  for_each(1, to.count(), detail::RoundToBf16<>{elements<float>(from), elements<Bf16>(to)});
}

void CudaBackend::add(Tensor to, Tensor from) {
  const auto add_as = [&]<class T>(T* into) {
    for_each(1, to.count(), detail::Add<T>{into, elements<T>(from)});
  };
  if (to.type() == DType::i64) return add_as(elements<int64_t>(to));
  as_stored(to, add_as);
}

void CudaBackend::maximum(Tensor to, Tensor from) {
  const auto maximum_as = [&]<class T>(T* into) {
    for_each(1, to.count(), detail::Maximum<T>{into, elements<T>(from)});
  };
  if (to.type() == DType::i64) return maximum_as(elements<int64_t>(to));
  as_stored(to, maximum_as);
}

void CudaBackend::scale(Tensor to, float factor) {
  as_stored(to, [&]<class T>(T* t) { for_each(1, to.count(), detail::Scale<T>{t, factor}); });
}

void CudaBackend::add_bias(Tensor z, Tensor bias) {
  as_stored(z, [&]<class T>(T* sums) {
    for_each(z.rows(), z.cols(), detail::AddBias<T>{elements<T>(bias), sums, z.cols()});
  });
}

void CudaBackend::bias_gelu(Tensor z, Tensor bias, Tensor y) {
  as_stored(z, [&]<class T>(T* sums) {
    T* out = elements<T>(y);
    if (bias.empty()) {
      for_each(1, z.count(), detail::BiasGelu<T, false>{nullptr, sums, out, z.count()});
    } else {
      const T* biases = elements<T>(bias);
      for_each(z.rows(), z.cols(), detail::BiasGelu<T, true>{biases, sums, out, z.cols()});
    }
  });
}

void CudaBackend::gelu_backward(Tensor z, Tensor dy) {
  as_stored(z, [&]<class T>(T* in_out) {
    for_each(1, z.count(), detail::GeluBackward<T>{elements<T>(dy), in_out});
  });
}

// A thread a column: neighbours then read neighbouring elements.
void CudaBackend::add_column_sums(Tensor from, Tensor to) {
  as_stored(from, [&]<class From>(const From* summands) {
    as_stored(to, [&]<class To>(To* into) {
      for_each(1, from.cols(),
               detail::ColumnSums<From, To, 1>{summands, into, from.rows(), from.cols()});
    });
  });
}

// A thread a sum: neighbours read neighbouring elements.
void CudaBackend::add_square_sums(Tensor from, Tensor to) {
  as_stored(from, [&]<class From>(const From* numbers) {
    for_each(1, to.count(),
             detail::SquareSums<From, 1>{numbers, elements<float>(to), from.count(), to.count()});
  });
}

void CudaBackend::add_up(Tensor from, Tensor to) {
  for_each(1, 1, detail::AddUp{elements<float>(from), elements<float>(to), from.count()});
}

void CudaBackend::clip_factor(Tensor squares, float samples, float longest, Tensor result) {
  for_each(1, 1,
           detail::ClipFactor{elements<float>(squares), elements<float>(result), squares.count(),
                              samples, longest});
}

void CudaBackend::softmax_cross_entropy(Tensor logits, Tensor labels, Tensor loss) {
  as_stored(logits, [&]<class T>(T* rows) {
    using Softmax = detail::SoftmaxCrossEntropy<T>;
    const Softmax softmax{rows, elements<int64_t>(labels), elements<float>(loss), logits.cols()};
    for_each(1, logits.rows(), ByRow<Softmax>{softmax});
  });
}

void CudaBackend::adam(Tensor parameter, Tensor gradient, Tensor m, Tensor v, const AdamStep& s,
                       Tensor factor) {
  as_stored(parameter, [&]<class P>(P* p) {
    as_stored(gradient, [&]<class G>(const G* g) {
      const detail::Adam<P, G> update{p, g, elements<float>(m), elements<float>(v), s};
      if (factor.empty()) return for_each(1, parameter.count(), update);
      const WithFactor<detail::Adam<P, G>> scaled{update, elements<float>(factor)};
      for_each(1, parameter.count(), scaled);
    });
  });
}

}  // namespace fivecuts
