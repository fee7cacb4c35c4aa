// Matrix products by Eigen, apart from the element-wise operations: Eigen's headers take seconds to
// compile.
#include <Eigen/Core>
#include <algorithm>

#include "common/compute/operations.hpp"

namespace fivecuts {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using View = Eigen::Map<Matrix>;

View view(Tensor t) { return {t.as<float>().data(), t.rows(), t.cols()}; }

/// Checks and books c [m, n] = the product of two matrices with `k` in common; the product of bf16
/// may be kept in f32. True if there are numbers to compute on.
bool runs(bool shapes_match, std::int64_t k, Tensor a, Tensor b, Tensor c) {
  require(shapes_match, "the shapes of a matrix product do not match");
  const bool widened = a.type() == DType::bf16 && c.type() == DType::f32;
  require(a.type() == b.type() && (a.type() == c.type() || widened),
          "a matrix product of two types");
  if (c.device() == nullptr) return false;  // no elements either
  Work work;
  work.flops = 2 * static_cast<double>(c.count()) * static_cast<double>(k);
  work.bytes = static_cast<double>(a.bytes() + b.bytes() + c.bytes());
  work.thinnest = std::max<std::int64_t>(1, std::min({c.rows(), c.cols(), k}));
  work.half = a.type() == DType::bf16;
  return c.device()->runs("product", work);
}

}  // namespace

void multiply(Tensor a, Tensor b, Tensor c) {
  const bool match = a.cols() == b.rows() && c.rows() == a.rows() && c.cols() == b.cols();
  if (!runs(match, a.cols(), a, b, c)) return;
  view(c).noalias() = view(a) * view(b);
}

void multiply_transposed(Tensor a, Tensor b, Tensor c) {
  const bool match = a.cols() == b.cols() && c.rows() == a.rows() && c.cols() == b.rows();
  if (!runs(match, a.cols(), a, b, c)) return;
  view(c).noalias() = view(a) * view(b).transpose();
}

void add_transposed_product(Tensor a, Tensor b, Tensor c) {
  const bool match = a.rows() == b.rows() && c.rows() == a.cols() && c.cols() == b.cols();
  if (!runs(match, a.rows(), a, b, c)) return;
  view(c).noalias() += view(a).transpose() * view(b);
}

}  // namespace fivecuts
