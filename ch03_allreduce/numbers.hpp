#pragma once
// Numbers of a tensor, in and out, whatever its type and wherever it lies.
#include <vector>

#include "common/compute/operations.hpp"

namespace fivecuts::all_reduce {

/// x[i] = f(i)
template <class F>
void fill(Tensor x, const F& f) {
  if (x.dry()) return;
  const auto values = [&]<class T>(T) {
    std::vector<T> all;
    all.reserve(static_cast<std::size_t>(x.count()));
    for (std::int64_t i = 0; i < x.count(); ++i) all.push_back(static_cast<T>(f(i)));
    return all;
  };
  if (x.type() == DType::i64) {
    copy_in(values(std::int64_t{}), x);
  } else {
    copy_in(values(float{}), x);
  }
}

/// Exact: an i64 must be below 2^53.
inline std::vector<double> numbers(Tensor x) {
  if (x.type() == DType::i64) {
    const std::vector<std::int64_t> whole = copy_out_i64(x);
    return {whole.begin(), whole.end()};
  }
  const std::vector<float> real = copy_out(x);
  return {real.begin(), real.end()};
}

}  // namespace fivecuts::all_reduce
