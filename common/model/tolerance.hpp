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

/// What a run in one precision is held to.
struct Tolerances {
  Tolerance one_pass, trained_weights, trained_loss;
  double early_steps;  ///< how many steps of Adam a weight may be off after the first 20
};
inline constexpr Tolerances f32_tolerances{one_pass, trained_weights, trained_loss, 0};

/// bf16 has 8 bits: storing a number errs by up to 2^-9 of it. Measured in 22 runs on the digits
/// with 1 to 3 layers, widths to 256, batches of 64 to 200 and 15 to 60 epochs.
///  - A mean gradient is rounded a few times in each layer: at most 6.2e-4; its largest elements are
///    near 1, where the relative part takes over.
///  - Adam turns a gradient whose sign is all rounding into steps of the learning rate: a weight was
///    off by at most 8 steps after 20, and by 3.6e-2 at the end. Deeper models with smaller batches
///    and larger rates were off by 8 steps too. A weight that was not trained is off by 20.
///  - The loss hardly feels either: at most 1.1e-3.
inline constexpr Tolerances bf16_tolerances{{5e-3, 5e-2}, {1.5e-1, 0}, {5e-3, 2e-2}, 12};

}  // namespace fivecuts
