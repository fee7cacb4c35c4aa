#pragma once
// How far single precision may lie from the golden double. The only tolerances of the project.

namespace fivecuts {

struct Tolerance {
  double absolute, relative;
};

/// One pass: a dot product of k terms of size 1 errs by about sqrt(k) * 2^-24 = 2e-6 for k = 1024, and a
/// gradient goes through a few of them.
inline constexpr Tolerance one_pass{2e-5, 2e-4};

/// Weights while training: Adam divides by the size of the gradient, so an element whose gradient is all
/// rounding still moves by up to the learning rate a step. Measured on the digits (15 epochs, learning rate
/// 3e-3): at most 4e-4; the margin is for other cuts of the batch.
inline constexpr Tolerance trained_weights{4e-3, 4e-3};

/// The mean loss of an epoch of such a run.
inline constexpr Tolerance trained_loss{1e-4, 2e-3};

}  // namespace fivecuts
