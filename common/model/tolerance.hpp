#pragma once
// How far single precision may lie from the golden double. The only tolerances of the project.

namespace fivecuts {

struct Tolerance {
  double absolute, relative;
};

/// One pass: a dot product of k terms of size 1 errs by about sqrt(k) * 2^-24 = 2e-6 for k = 1024,
/// and a gradient goes through a few of them.
inline constexpr Tolerance one_pass{2e-5, 2e-4};

/// Weights after training: Adam divides by the size of the gradient, so an element whose gradient
/// is all rounding still moves by up to the learning rate a step. Measured on the digits with 1 to
/// 6 layers, widths to 256, batches of 10 to 100 and 15 to 60 epochs: at most 5.1e-5. The margin is
/// tenfold.
inline constexpr Tolerance trained_weights{5e-4, 5e-4};

/// The mean loss of an epoch of such a run; measured: at most 7e-6.
inline constexpr Tolerance trained_loss{7e-5, 1e-4};

struct Tolerances {
  Tolerance one_pass, trained_weights, trained_loss;
};
inline constexpr Tolerances f32_tolerances{one_pass, trained_weights, trained_loss};

inline constexpr Tolerances bf16_tolerances{{1e-1, 1e-1}, {1, 1}, {1, 1}};

}  // namespace fivecuts
