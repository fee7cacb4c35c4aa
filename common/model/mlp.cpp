#include "common/model/mlp.hpp"

#include <cmath>

#include "common/model/random.hpp"

namespace fivecuts {

std::int64_t parameter_count(const ModelShape& model) {
  std::int64_t count = 0;
  for (const LayerShape& shape : model) count += shape.parameters();
  return count;
}

ModelShape mlp_shape(std::int64_t in, std::int64_t width, std::int64_t out, int layers, bool bias,
                     bool residual) {
  ModelShape model;
  for (int k = 0; k < layers; ++k) {
    const bool last = k == layers - 1;
    LayerShape shape{k == 0 ? in : width, last ? out : width, bias, !last, false};
    shape.residual = residual && !last && shape.in == shape.out;
    model.push_back(shape);
  }
  return model;
}

Tensor weight_of(const LayerShape& shape, Tensor bucket) {
  return bucket.part(0, shape.in * shape.out).shaped(shape.in, shape.out);
}

Tensor bias_of(const LayerShape& shape, Tensor bucket) {
  return shape.bias ? bucket.part(shape.in * shape.out, shape.out) : Tensor();
}

void initialise(const LayerShape& shape, Tensor bucket, std::uint64_t seed, int layer) {
  const double bound = std::sqrt(6.0 / static_cast<double>(shape.in + shape.out));
  fill_uniform(weight_of(shape, bucket), seed, static_cast<std::uint32_t>(layer),
               static_cast<float>(bound));
  if (shape.bias) zero(bias_of(shape, bucket));
}

Saved::Saved(Device& device, const LayerShape& shape, std::int64_t rows, DType type)
    : z(device, Category::activation, rows, shape.out, type) {
  if (shape.gelu || shape.residual) y = Buffer(device, Category::activation, rows, shape.out, type);
}

void forward(const LayerShape& shape, Tensor parameters, Tensor x, Saved& saved) {
  const auto span = x.device()->span("forward");
  saved.x = x;
  multiply(x, weight_of(shape, parameters), saved.z);
  if (shape.gelu) {
    bias_gelu(saved.z, bias_of(shape, parameters), saved.y);
  } else {
    if (shape.bias) add_bias(saved.z, bias_of(shape, parameters));
    if (shape.residual) copy(saved.z, saved.y);
  }
  if (shape.residual) add(saved.y, x);
}

void backward_input(const LayerShape& shape, Tensor parameters, Saved& saved, Tensor dy,
                    Tensor dx) {
  const auto span = dy.device()->span("backward");
  if (shape.gelu) {
    gelu_backward(saved.z, dy);
  } else if (dy.data() != saved.z.tensor().data()) {
    copy(dy, saved.z);
  }
  if (dx.empty()) return;
  multiply_transposed(saved.z, weight_of(shape, parameters), dx);
  if (shape.residual) add(dx, dy);
}

void backward_weight(const LayerShape& shape, const Saved& saved, Tensor gradients) {
  const auto span = saved.x.device()->span("weight gradient");
  add_transposed_product(saved.x, saved.z, weight_of(shape, gradients));
  if (shape.bias) add_column_sums(saved.z, bias_of(shape, gradients));
}

}  // namespace fivecuts
