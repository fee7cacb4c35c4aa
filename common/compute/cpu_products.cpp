// Matrix products by Eigen, apart from the element-wise operations: Eigen's headers take seconds to
// compile.
#include <Eigen/Core>

#include "common/compute/cpu_backend.hpp"

namespace fivecuts {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using View = Eigen::Map<Matrix>;

View view(Tensor t) { return {t.as<float>().data(), t.rows(), t.cols()}; }

}  // namespace

void CpuBackend::multiply(Tensor a, Tensor b, Tensor c) { view(c).noalias() = view(a) * view(b); }

void CpuBackend::multiply_transposed(Tensor a, Tensor b, Tensor c) {
  view(c).noalias() = view(a) * view(b).transpose();
}

void CpuBackend::add_transposed_product(Tensor a, Tensor b, Tensor c) {
  view(c).noalias() += view(a).transpose() * view(b);
}

}  // namespace fivecuts
