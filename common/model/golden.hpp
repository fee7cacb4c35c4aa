#pragma once
// The independent reference: the unsharded problem in Eigen, double precision, one process. It
// shares no arithmetic with the code under test; only shapes and the starting weights' generator
// are common.
#include <Eigen/Core>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "common/model/mlp.hpp"

namespace fivecuts::golden {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::RowVectorXd;

struct Layer {
  Matrix w;  ///< [in, out]
  Vector b;  ///< [out], empty without bias
};

class Model {
 public:
  Model(ModelShape shape, std::uint64_t seed);

  /// Sum of the losses over the rows of x [b, in]; labels [b].
  double loss(const Matrix& x, std::span<const std::int64_t> labels) const;
  /// The gradient of that sum, layer by layer. `dx`, if given, receives the one with respect to x.
  std::vector<Layer> gradient(const Matrix& x, std::span<const std::int64_t> labels,
                              Matrix* dx = nullptr) const;
  /// One Adam update with the mean gradient of the rows, scaled down to the norm `clip` if it is
  /// longer. Returns its norm before that.
  double step(const Matrix& x, std::span<const std::int64_t> labels, const AdamOptions& options,
              double clip = std::numeric_limits<double>::infinity());
  /// Share of the rows whose largest output is the label's.
  double accuracy(const Matrix& x, std::span<const std::int64_t> labels) const;

  std::vector<Layer>& layers() { return layers_; }
  const std::vector<Layer>& layers() const { return layers_; }

 private:
  Matrix output(const Matrix& x) const;
  ModelShape shape_;
  std::vector<Layer> layers_, m_, v_;
  std::int64_t steps_ = 0;
};

/// A layer as one flat run, in the order of the buckets: W row by row, then b.
std::vector<double> flat(const Layer& layer);
/// Rows of single-precision samples as a matrix.
Matrix matrix(std::span<const float> rows, std::int64_t cols);

}  // namespace fivecuts::golden
