#pragma once
// Random numbers without a state: each is a pure function of who asks. So any cut of a tensor over
// any number of ranks starts from the same bits, and nothing has to be broadcast.
#include <array>
#include <cstdint>
#include <vector>

#include "common/compute/tensor.hpp"

namespace fivecuts {

/// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC11,
/// section 3.3).
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key);

/// Uniform in [-1, 1): exact in float, so the same bits on every machine.
float uniform(std::uint64_t seed, std::uint32_t tensor, std::int64_t row, std::int64_t col);

/// Fills `to` with `bound` * uniform(seed, tensor, first_row + i, first_col + j): the slice of the
/// global tensor that starts at (first_row, first_col). What is bf16 gets the same numbers,
/// rounded.
void fill_uniform(Tensor to, std::uint64_t seed, std::uint32_t tensor, float bound,
                  std::int64_t first_row = 0, std::int64_t first_col = 0);

/// The numbers 0 .. count-1 in an order that depends on (seed, epoch) alone.
std::vector<std::int64_t> shuffled(std::int64_t count, std::uint64_t seed, std::uint32_t epoch);

}  // namespace fivecuts
