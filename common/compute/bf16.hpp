#pragma once
// bf16: the upper half of an f32, so its range with 8 bits of precision. It is stored and sent in
// this form; arithmetic is done in float, and its result rounded.
#include <bit>
#include <cstdint>

#ifdef __CUDACC__
#define FIVECUTS_HD __host__ __device__
#else
#define FIVECUTS_HD
#endif

namespace fivecuts {

/// Converts to and from float without being asked, so that code over `float` or `Bf16` reads the
/// same: an expression is computed in float and rounded where it is stored.
struct Bf16 {
  std::uint16_t bits;

  Bf16() = default;
  /// To the nearest, ties to even; beyond the largest to infinity; NaN stays NaN.
  FIVECUTS_HD Bf16(float value) {
    const auto whole = std::bit_cast<std::uint32_t>(value);
    // Less than half of the last place that stays carries nothing into it, more than half does, and
    // exactly half does if that place is odd.
    const std::uint32_t rounded = whole + 0x7FFFu + ((whole >> 16) & 1u);
    const bool nan = (whole & 0x7FFFFFFFu) > 0x7F800000u;
    bits = static_cast<std::uint16_t>((nan ? whole | 0x400000u : rounded) >> 16);
  }
  FIVECUTS_HD operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
};
static_assert(sizeof(Bf16) == 2);

}  // namespace fivecuts
