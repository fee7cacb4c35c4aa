// Matrix products by Eigen, apart from the element-wise operations: Eigen's headers take seconds to
// compile.
#include <Eigen/Core>

#include "common/compute/operations.hpp"

namespace fivecuts {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using View = Eigen::Map<Matrix>;

View view(Tensor t) { return {t.as<float>().data(), t.rows(), t.cols()}; }

void shapes(bool match) { require(match, "the shapes of a matrix product do not match"); }

}  // namespace

void multiply(Tensor a, Tensor b, Tensor c) {
  shapes(a.cols() == b.rows() && c.rows() == a.rows() && c.cols() == b.cols());
  view(c).noalias() = view(a) * view(b);
}

void multiply_transposed(Tensor a, Tensor b, Tensor c) {
  shapes(a.cols() == b.cols() && c.rows() == a.rows() && c.cols() == b.rows());
  view(c).noalias() = view(a) * view(b).transpose();
}

void add_transposed_product(Tensor a, Tensor b, Tensor c) {
  shapes(a.rows() == b.rows() && c.rows() == a.cols() && c.cols() == b.cols());
  view(c).noalias() += view(a).transpose() * view(b);
}

}  // namespace fivecuts
