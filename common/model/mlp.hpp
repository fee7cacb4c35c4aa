#pragma once
// The blocks of a multi-layer perceptron. They own nothing: parameters and gradients are views into
// one flat bucket per layer that the caller supplies, and what the backward pass needs is kept in
// an object per micro-batch. So a pipeline can schedule them, tensor parallelism slice them and
// ZeRO shard them.
#include <cstdint>
#include <vector>

#include "common/compute/operations.hpp"

namespace fivecuts {

/// y = gelu(x W + b) + x, each part of it optional but the product. W is [in, out], row-major.
struct LayerShape {
  std::int64_t in = 0, out = 0;
  bool bias = true, gelu = true, residual = false;  ///< residual needs in == out

  std::int64_t parameters() const { return in * out + (bias ? out : 0); }
};
using ModelShape = std::vector<LayerShape>;

std::int64_t parameter_count(const ModelShape& model);
/// in -> width -> ... -> width -> out: `layers` layers, all but the last with GELU, those of equal
/// width with a residual if asked for.
ModelShape mlp_shape(std::int64_t in, std::int64_t width, std::int64_t out, int layers,
                     bool bias = true, bool residual = false);

/// Views into a layer's flat bucket of shape.parameters() elements: first W, row by row, then b.
Tensor weight_of(const LayerShape& shape, Tensor bucket);  ///< [in, out]
Tensor bias_of(const LayerShape& shape, Tensor bucket);    ///< [out], or empty

/// The layer's starting weights: W uniform in +-sqrt(6 / (in + out)) (Glorot and Bengio 2010, eq.
/// 16), b zero. `layer` is its number in the whole model, so every rank and every cut gets the same
/// ones.
void initialise(const LayerShape& shape, Tensor bucket, std::uint64_t seed, int layer);
/// The same for the elements `part` of the bucket alone, which `to` holds.
void initialise_part(const LayerShape& shape, Tensor to, Part part, std::uint64_t seed, int layer);

/// What one layer keeps of one micro-batch of b rows, in the ledger as activations.
struct Saved {
  Saved(Device& device, const LayerShape& shape, std::int64_t rows, DType type = DType::f32);
  Tensor x;  ///< [b, in], the layer's input; the view is kept, the numbers are their owner's
  Buffer z;  ///< [b, out], x W + b; after backward_input: the gradient with respect to it
  Buffer y;  ///< [b, out], the output; no memory where it is z itself (no GELU, no residual)
  Tensor output() const { return y.tensor().device() != nullptr ? y : z; }
};

/// Fills saved.z and the output from `x` [b, in].
void forward(const LayerShape& shape, Tensor parameters, Tensor x, Saved& saved);

/// From `dy` [b, out], the gradient with respect to the output, to `dx` [b, in], the one with
/// respect to the input. An empty `dx` leaves that product out (the first layer). saved.z becomes
/// the gradient with respect to x W + b, which backward_weight needs: call this one first.
void backward_input(const LayerShape& shape, Tensor parameters, Saved& saved, Tensor dy, Tensor dx);

/// Adds this micro-batch's part to `gradients`, a flat bucket like the parameters'.
void backward_weight(const LayerShape& shape, const Saved& saved, Tensor gradients);

}  // namespace fivecuts
