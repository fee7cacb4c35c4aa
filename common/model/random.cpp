#include "common/model/random.hpp"

#include <algorithm>
#include <numeric>

#include "common/compute/operations.hpp"

namespace fivecuts {
namespace {

std::array<std::uint32_t, 2> key_of(std::uint64_t seed) {
  return {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
}

// The last counter word keeps the generator's uses apart.
enum Purpose : std::uint32_t { weights = 0, order = 1 };

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> c,
                                    std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53u} * c[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ key[0], static_cast<std::uint32_t>(b),
         static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return c;
}

float uniform(std::uint64_t seed, std::uint32_t tensor, std::int64_t row, std::int64_t col) {
  const auto words =
      philox({static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(col), tensor, weights},
             key_of(seed));
  const auto top = static_cast<std::int32_t>(words[0] >> 8);  // 24 bits fit a float exactly
  return static_cast<float>(top - (1 << 23)) * 0x1p-23f;
}

void fill_uniform(Tensor to, std::uint64_t seed, std::uint32_t tensor, float bound,
                  std::int64_t first_row, std::int64_t first_col) {
  if (to.dry()) return;
  constexpr std::int64_t at_once = 1 << 16;  // a GPU takes few large copies better than many small
  std::vector<float> values;
  std::int64_t copied = 0;
  for (std::int64_t r = 0; r < to.rows(); ++r) {
    for (std::int64_t c = 0; c < to.cols(); ++c) {
      values.push_back(bound * uniform(seed, tensor, first_row + r, first_col + c));
    }
    const auto count = static_cast<std::int64_t>(values.size());
    if (count < at_once && r + 1 < to.rows()) continue;
    copy_in(values, to.part(copied, count));
    copied += count;
    values.clear();
  }
}

std::vector<std::int64_t> shuffled(std::int64_t count, std::uint64_t seed, std::uint32_t epoch) {
  std::vector<std::pair<std::uint64_t, std::int64_t>> keyed;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto w = philox({static_cast<std::uint32_t>(i), 0, epoch, order}, key_of(seed));
    keyed.emplace_back((std::uint64_t{w[0]} << 32) | w[1], i);
  }
  std::sort(keyed.begin(), keyed.end());
  std::vector<std::int64_t> numbers;
  for (const auto& [key, i] : keyed) numbers.push_back(i);
  return numbers;
}

}  // namespace fivecuts
