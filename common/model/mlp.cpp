#include "common/model/mlp.hpp"

#include <algorithm>
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
  initialise_part(shape, bucket, {0, shape.parameters()}, seed, layer);
}

// Of W, as many whole rows at a time as there are; a part may begin and end inside a row.
void initialise_part(const LayerShape& shape, Tensor to, Part part, std::uint64_t seed, int layer) {
  require(to.count() == part.count, "a part needs a place for each of its elements");
  const double bound = std::sqrt(6.0 / static_cast<double>(shape.in + shape.out));
  const std::int64_t end = std::min(part.first + part.count, shape.in * shape.out);
  std::int64_t at = part.first;
  while (at < end) {
    const std::int64_t row = at / shape.out, col = at % shape.out;
    const bool whole_rows = col == 0 && end - at >= shape.out;
    const std::int64_t rows = whole_rows ? (end - at) / shape.out : 1;
    const std::int64_t cols = whole_rows ? shape.out : std::min(shape.out - col, end - at);
    fill_uniform(to.part(at - part.first, rows * cols).shaped(rows, cols), seed,
                 static_cast<std::uint32_t>(layer), static_cast<float>(bound), row, col);
    at += rows * cols;
  }
  if (shape.bias) zero(to.part(at - part.first, part.first + part.count - at));
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
