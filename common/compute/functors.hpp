#pragma once
// The element-wise mathematics, once, as named functors that any device can run. Private to
// common/compute. Each reads and writes an element once: on every device these are limited by
// memory. T is how the elements are stored, float or Bf16; all arithmetic is in float, and what is
// stored as Bf16 is rounded once.
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "common/compute/backend.hpp"

namespace fivecuts::detail {

/// e^x for |x| <= 87 to 2 units in the last place, without a branch or a call, so that loops over
/// it become vector code (std::exp does not, short of -ffast-math). x = n ln 2 + r, e^x = 2^n e^r,
/// with n the nearest integer and e^r = 1 + r + r^2 q(r), q the minimax polynomial on
/// |r| <= ln 2 / 2 (relative error of e^r 4e-9; Taylor's of this degree 1e-7). NaN stays NaN.
FIVECUTS_HD inline float exp_in_range(float x) {
  // Adding 1.5 * 2^23 leaves the nearest integer in the low bits of the sum.
  const float shifted = x * 1.44269504f + 12582912.0f;
  const float n = shifted - 12582912.0f;
  const float r = (x - n * 0.693145752f) - n * 1.42860677e-6f;
  float p = 1.38145406e-3f;
  p = p * r + 8.36874545e-3f;
  p = p * r + 4.1668389e-2f;
  p = p * r + 1.66665211e-1f;
  p = p * r + 0.49999994f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const std::uint32_t power = (std::bit_cast<std::uint32_t>(shifted) << 23) + 0x3F800000u;
  return p * std::bit_cast<float>(power);
}

/// e^x; saturates outside [-87.3, 88.3].
FIVECUTS_HD inline float exp_(float x) {
  x = x < -87.3f ? -87.3f : x;
  x = x > 88.3f ? 88.3f : x;
  return exp_in_range(x);
}

/// GELU in its tanh form (Hendrycks and Gimpel, arXiv:1606.08415): z * sigmoid(2u),
/// u = sqrt(2/pi) (z + 0.044715 z^3). Beyond |z| = far it is 0 or z and its slope 0 or 1 in every
/// bit that counts: stopping there keeps 2u in the range of exp_in_range, and away from inf * 0.
struct Gelu {
  static constexpr float far = 9.5f;
  static constexpr float a = 1.5957691216f;  // 2 sqrt(2/pi)
  static constexpr float b = 0.0713548163f;  // a * 0.044715
  FIVECUTS_HD static float at_least(float z) { return z < -far ? -far : z; }
  FIVECUTS_HD static float at_most(float z) { return z > far ? far : z; }
  FIVECUTS_HD static float gate(float z) {
    return 1.0f / (1.0f + exp_in_range(-z * (a + b * z * z)));
  }
  FIVECUTS_HD static float value(float z) {
    z = at_least(z);
    return z * gate(at_most(z));
  }
  FIVECUTS_HD static float slope(float z) {
    z = at_most(at_least(z));
    const float s = gate(z);
    return s + z * s * (1.0f - s) * (a + 3.0f * b * z * z);
  }
};

/// z += bias (if any); y = gelu(z).
template <class T, bool has_bias>
struct BiasGelu {
  const T* bias;
  T* z;
  T* y;
  std::int64_t cols;
  FIVECUTS_HD void operator()(std::int64_t r, std::int64_t c) const {
    const std::int64_t i = r * cols + c;
    float v = z[i];
    if constexpr (has_bias) {
      v += static_cast<float>(bias[c]);
      z[i] = v;
    }
    y[i] = Gelu::value(v);
  }
};

template <class T>
struct AddBias {
  const T* bias;
  T* z;
  std::int64_t cols;
  FIVECUTS_HD void operator()(std::int64_t r, std::int64_t c) const {
    z[r * cols + c] = z[r * cols + c] + bias[c];
  }
};

/// z = dy * gelu'(z): the gradient takes the place of what it was computed from.
template <class T>
struct GeluBackward {
  const T* dy;
  T* z;
  FIVECUTS_HD void operator()(std::int64_t, std::int64_t i) const {
    z[i] = dy[i] * Gelu::slope(z[i]);
  }
};

/// T may be std::int64_t too.
template <class T, class From = T>
struct Add {
  T* to;
  const From* from;
  FIVECUTS_HD void operator()(std::int64_t, std::int64_t i) const { to[i] = to[i] + from[i]; }
};

/// T may be std::int64_t too.
template <class T, class From = T>
struct Maximum {
  T* to;
  const From* from;
  FIVECUTS_HD void operator()(std::int64_t, std::int64_t i) const {
    const auto own = +to[i], other = +from[i];  // numbers, however they are stored
    to[i] = other > own ? other : own;
  }
};

template <class From = float, class To = Bf16>
struct RoundToBf16 {
  const From* from;
  To* to;
  FIVECUTS_HD void operator()(std::int64_t, std::int64_t i) const {
    to[i] = static_cast<float>(from[i]);
  }
};

template <class T>
struct Scale {
  T* to;
  float factor;
  FIVECUTS_HD void operator()(std::int64_t, std::int64_t i) const { to[i] = to[i] * factor; }
};

/// Sums of `at_once` neighbouring columns, down the rows in order: the order of the additions
/// depends on nothing but the number of rows.
template <class From, class To, std::int64_t at_once = 16>
struct ColumnSums {
  static constexpr std::int64_t width = at_once;
  const From* from;
  To* to;  // += column sums
  std::int64_t rows, cols;
  FIVECUTS_HD void operator()(std::int64_t, std::int64_t block) const {
    const std::int64_t first = block * width;
    float sums[width] = {};
    if (first + width <= cols) {
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t k = 0; k < width; ++k) sums[k] += from[r * cols + first + k];
      }
      for (std::int64_t k = 0; k < width; ++k) to[first + k] = to[first + k] + sums[k];
    } else {
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = first; c < cols; ++c) sums[c - first] += from[r * cols + c];
      }
      for (std::int64_t c = first; c < cols; ++c) to[c] = to[c] + sums[c - first];
    }
  }
};

/// Element i's square goes to sum i mod `sums`: neighbours go to neighbours, so `at_once` of the
/// sums are vector code, and each is added up in the order of the elements, on any device.
template <class From, std::int64_t at_once = 256>
struct SquareSums {
  static constexpr std::int64_t width = at_once;
  const From* from;
  float* to;  // += squares
  std::int64_t count, sums;
  FIVECUTS_HD void operator()(std::int64_t, std::int64_t block) const {
    const std::int64_t first = block * width;
    const std::int64_t cols = sums - first < width ? sums - first : width;
    float mine[width] = {};
    for (std::int64_t row = first; row < count; row += sums) {
      const std::int64_t here = count - row < cols ? count - row : cols;
      for (std::int64_t c = 0; c < here; ++c) {
        const float x = from[row + c];
        mine[c] += x * x;
      }
    }
    for (std::int64_t c = 0; c < cols; ++c) to[first + c] = to[first + c] + mine[c];
  }
};

/// From first to last, whoever adds.
FIVECUTS_HD inline double total_of(const float* numbers, std::int64_t count) {
  double total = 0;
  for (std::int64_t i = 0; i < count; ++i) total += static_cast<double>(numbers[i]);
  return total;
}

/// to[0] = the sum.
struct AddUp {
  const float* from;
  float* to;
  std::int64_t count;
  FIVECUTS_HD void operator()(std::int64_t, std::int64_t) const {
    to[0] = static_cast<float>(total_of(from, count));
  }
};

/// The root of a sum of squares, over `samples`; and the factor that makes `longest` of more.
struct ClipFactor {
  const float* squares;
  float* norm_and_factor;
  std::int64_t count;
  float samples, longest;
  FIVECUTS_HD void operator()(std::int64_t, std::int64_t) const {
    const double length = sqrt(total_of(squares, count));
    const float norm = static_cast<float>(length / static_cast<double>(samples));
    norm_and_factor[0] = norm;
    norm_and_factor[1] = norm > longest ? longest / norm : 1.0f;
  }
};

/// One row of logits becomes softmax(row) - onehot(label), and loss[row] = -log
/// softmax(row)[label]. The largest logit is subtracted first, so nothing overflows. The row holds
/// its exponentials in between if it can; Bf16 would round them there, so they are computed again.
/// A label that is no class makes its row NaN: a GPU has nobody to tell.
template <class T>
struct SoftmaxCrossEntropy {
  static constexpr bool in_place = std::is_same_v<T, float>;
  T* logits;
  const std::int64_t* labels;
  float* loss;
  std::int64_t cols;
  // In the loop itself the same expression becomes a branch that is mostly predicted wrong (g++
  // 12).
  FIVECUTS_HD static float larger(float a, float b) { return a > b ? a : b; }
  FIVECUTS_HD void operator()(std::int64_t r, std::int64_t) const {
    constexpr std::int64_t lanes = 16;
    T* row = logits + r * cols;
    if (labels[r] < 0 || labels[r] >= cols) {
      for (std::int64_t c = 0; c < cols; ++c) row[c] = NAN;
      loss[r] = NAN;
      return;
    }
    float largest = row[0];
    for (std::int64_t c = 1; c < cols; ++c) largest = larger(row[c], largest);
    const float picked = row[labels[r]] - largest;
    float sums[lanes] = {};
    std::int64_t c = 0;
    for (; c + lanes <= cols; c += lanes) {
      for (std::int64_t k = 0; k < lanes; ++k) {
        const float power = exp_(row[c + k] - largest);
        if constexpr (in_place) row[c + k] = power;
        sums[k] += power;
      }
    }
    for (; c < cols; ++c) {
      const float power = exp_(row[c] - largest);
      if constexpr (in_place) row[c] = power;
      sums[0] += power;
    }
    float sum = 0;
    for (const float s : sums) sum += s;
    const float inverse = 1.0f / sum;
    for (std::int64_t k = 0; k < cols; ++k) {
      row[k] = (in_place ? static_cast<float>(row[k]) : exp_(row[k] - largest)) * inverse;
    }
    // From the power, not from its rounded share, which has too few bits left near 1.
    row[labels[r]] = in_place ? row[labels[r]] - 1.0f : exp_(picked) * inverse - 1.0f;
    loss[r] = std::log(sum) - picked;
  }
};

/// Adam (Kingma and Ba, arXiv:1412.6980, algorithm 1), the bias corrections folded into two
/// factors.
template <class P, class G, class M = float>
struct Adam {
  P* parameter;
  const G* gradient;
  M* m;
  M* v;
  AdamStep step;
  FIVECUTS_HD void operator()(std::int64_t, std::int64_t i) const {
    const float g = gradient[i] * step.gradient_scale;
    const float mean = step.beta1 * m[i] + (1.0f - step.beta1) * g;
    const float square = step.beta2 * v[i] + (1.0f - step.beta2) * g * g;
    m[i] = mean;
    v[i] = square;
    parameter[i] =
        parameter[i] - step.step_size * mean / (sqrtf(square * step.v_correction) + step.epsilon);
  }
};

}  // namespace fivecuts::detail
