#include "common/model/golden.hpp"

#include <cmath>
#include <numbers>

#include "common/model/random.hpp"

namespace fivecuts::golden {
namespace {

Matrix gelu(const Matrix& z) {
  const double k = std::sqrt(2 / std::numbers::pi);
  return (0.5 * z.array() * (1 + (k * (z.array() + 0.044715 * z.array().cube())).tanh())).matrix();
}

/// d gelu / dz, from the definition 0.5 z (1 + tanh(u)) by the product rule.
Matrix gelu_slope(const Matrix& z) {
  const double k = std::sqrt(2 / std::numbers::pi);
  const auto t = (k * (z.array() + 0.044715 * z.array().cube())).tanh().eval();
  const auto du = k * (1 + 3 * 0.044715 * z.array().square());
  return (0.5 * (1 + t) + 0.5 * z.array() * (1 - t.square()) * du).matrix();
}

Matrix linear(const LayerShape& shape, const Layer& layer, const Matrix& x) {
  Matrix z = x * layer.w;
  if (shape.bias) z.rowwise() += layer.b;
  return z;
}

/// log softmax, row by row.
Matrix log_softmax(const Matrix& logits) {
  const Matrix shifted = logits.colwise() - logits.rowwise().maxCoeff();
  return shifted.colwise() - shifted.array().exp().rowwise().sum().log().matrix().eval();
}

}  // namespace

Model::Model(ModelShape shape, std::uint64_t seed) : shape_(std::move(shape)) {
  for (std::size_t k = 0; k < shape_.size(); ++k) {
    const LayerShape& s = shape_[k];
    const double bound = std::sqrt(6.0 / static_cast<double>(s.in + s.out));
    Layer layer{Matrix(s.in, s.out), Vector::Zero(s.bias ? s.out : 0)};
    for (Eigen::Index r = 0; r < s.in; ++r) {
      for (Eigen::Index c = 0; c < s.out; ++c) {
        // Rounded as the code under test stores it, so that both start from the same weights.
        layer.w(r, c) =
            static_cast<float>(bound) * uniform(seed, static_cast<std::uint32_t>(k), r, c);
      }
    }
    layers_.push_back(layer);
    const Layer zeros{Matrix::Zero(s.in, s.out), Vector::Zero(layer.b.size())};
    m_.push_back(zeros);
    v_.push_back(zeros);
  }
}

Matrix Model::output(const Matrix& x) const {
  Matrix y = x;
  for (std::size_t k = 0; k < shape_.size(); ++k) {
    const Matrix z = linear(shape_[k], layers_[k], y);
    Matrix next = shape_[k].gelu ? gelu(z) : z;
    if (shape_[k].residual) next += y;
    y = next;
  }
  return y;
}

double Model::loss(const Matrix& x, std::span<const std::int64_t> labels) const {
  const Matrix log_p = log_softmax(output(x));
  double loss = 0;
  for (Eigen::Index r = 0; r < log_p.rows(); ++r)
    loss -= log_p(r, labels[static_cast<std::size_t>(r)]);
  return loss;
}

std::vector<Layer> Model::gradient(const Matrix& x, std::span<const std::int64_t> labels,
                                   Matrix* dx) const {
  std::vector<Matrix> inputs{x}, z;
  for (std::size_t k = 0; k < shape_.size(); ++k) {
    z.push_back(linear(shape_[k], layers_[k], inputs.back()));
    Matrix y = shape_[k].gelu ? gelu(z.back()) : z.back();
    if (shape_[k].residual) y += inputs.back();
    inputs.push_back(y);
  }
  Matrix dy = log_softmax(inputs.back()).array().exp();
  for (Eigen::Index r = 0; r < dy.rows(); ++r) dy(r, labels[static_cast<std::size_t>(r)]) -= 1;

  std::vector<Layer> gradients(shape_.size());
  for (std::size_t k = shape_.size(); k-- > 0;) {
    const Matrix dz = shape_[k].gelu ? Matrix(dy.cwiseProduct(gelu_slope(z[k]))) : dy;
    gradients[k].w = inputs[k].transpose() * dz;
    gradients[k].b = shape_[k].bias ? Vector(dz.colwise().sum()) : Vector(0);
    Matrix below = dz * layers_[k].w.transpose();
    if (shape_[k].residual) below += dy;
    dy = below;
  }
  if (dx != nullptr) *dx = dy;
  return gradients;
}

double Model::step(const Matrix& x, std::span<const std::int64_t> labels, const AdamOptions& o,
                   double clip) {
  std::vector<Layer> gradients = gradient(x, labels);
  double squares = 0;
  for (const Layer& g : gradients) squares += g.w.squaredNorm() + g.b.squaredNorm();
  const double norm = std::sqrt(squares) / static_cast<double>(x.rows());
  for (Layer& g : gradients) {
    if (norm > clip) g.w *= clip / norm, g.b *= clip / norm;
  }
  const double beta1 = o.beta1, beta2 = o.beta2, rate = o.learning_rate, epsilon = o.epsilon;
  const double count = static_cast<double>(x.rows()), t = static_cast<double>(++steps_);
  const auto update = [&](auto& p, const auto& g, auto& m, auto& v) {
    m = beta1 * m + (1 - beta1) / count * g;
    v = beta2 * v + (1 - beta2) / (count * count) * g.cwiseProduct(g);
    const auto m_hat = m.array() / (1 - std::pow(beta1, t));
    const auto v_hat = v.array() / (1 - std::pow(beta2, t));
    p.array() -= rate * m_hat / (v_hat.sqrt() + epsilon);
  };
  for (std::size_t k = 0; k < layers_.size(); ++k) {
    update(layers_[k].w, gradients[k].w, m_[k].w, v_[k].w);
    update(layers_[k].b, gradients[k].b, m_[k].b, v_[k].b);
  }
  return norm;
}

double Model::accuracy(const Matrix& x, std::span<const std::int64_t> labels) const {
  const Matrix y = output(x);
  std::int64_t correct = 0;
  for (Eigen::Index r = 0; r < y.rows(); ++r) {
    Eigen::Index best = 0;
    y.row(r).maxCoeff(&best);
    correct += best == labels[static_cast<std::size_t>(r)];
  }
  return static_cast<double>(correct) / static_cast<double>(y.rows());
}

std::vector<double> flat(const Layer& layer) {
  std::vector<double> values(layer.w.data(), layer.w.data() + layer.w.size());
  values.insert(values.end(), layer.b.data(), layer.b.data() + layer.b.size());
  return values;
}

Matrix matrix(std::span<const float> rows, std::int64_t cols) {
  using Floats = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return Eigen::Map<const Floats>(rows.data(), static_cast<Eigen::Index>(rows.size()) / cols, cols)
      .cast<double>();
}

}  // namespace fivecuts::golden
