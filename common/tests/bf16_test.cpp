// bf16: every value and every tie of the conversions, and each operation against plain loops in
// double precision, to half a unit in the last place.
#include <algorithm>
#include <bit>
#include <span>

#include "common/model/adam.hpp"
#include "common/tests/helpers.hpp"

namespace fivecuts {
namespace {

constexpr std::uint16_t infinity_bits = 0x7F80;

Bf16 of_bits(std::uint32_t bits) {
  Bf16 value;
  value.bits = static_cast<std::uint16_t>(bits);
  return value;
}
std::uint16_t rounded(std::uint32_t float_bits) {
  return Bf16(std::bit_cast<float>(float_bits)).bits;
}

ONE_RANK_TEST(Bf16, EveryValueComesBackFromFloat) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = of_bits(bits);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(value), bits << 16);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(Bf16(value)))) << bits;
      EXPECT_EQ(std::signbit(static_cast<float>(Bf16(value))), std::signbit(value)) << bits;
    } else {
      EXPECT_EQ(Bf16(value).bits, bits);
    }
  }
}

// Between each pair of neighbours, the denormal ones and the last one and infinity among them.
ONE_RANK_TEST(Bf16, RoundsToTheNearestAndTiesToEven) {
  for (std::uint32_t low = 0; low < infinity_bits; ++low) {
    for (const std::uint32_t sign : {0u, 0x8000u}) {
      const std::uint32_t from = sign | low, to = from + 1, start = from << 16;
      EXPECT_EQ(rounded(start + 1), from);
      EXPECT_EQ(rounded(start + 0x7FFF), from);
      EXPECT_EQ(rounded(start + 0x8000), low % 2 == 0 ? from : to);
      EXPECT_EQ(rounded(start + 0x8001), to);
      EXPECT_EQ(rounded(start + 0xFFFF), to);
    }
  }
  EXPECT_EQ(Bf16(std::numeric_limits<float>::max()).bits, infinity_bits);
  EXPECT_EQ(Bf16(-HUGE_VALF).bits, 0x8000 | infinity_bits);
}

// Cutting or rounding the mantissa of a NaN could leave that of infinity, or carry into the sign.
ONE_RANK_TEST(Bf16, NanStaysNan) {
  for (std::uint32_t mantissa = 1; mantissa < 0x800000; mantissa += mantissa < 0x20000 ? 1 : 97) {
    for (const std::uint32_t sign : {0u, 0x80000000u}) {
      const std::uint32_t bits = rounded(sign | 0x7F800000 | mantissa);
      EXPECT_GT(bits & 0x7FFF, infinity_bits);
      EXPECT_EQ(bits >> 15, sign >> 31);
    }
  }
  EXPECT_GT(rounded(0x7FFFFFFF) & 0x7FFF, infinity_bits);
}

Buffer bf16_buffer(std::int64_t rows, std::int64_t cols, std::uint32_t number, float bound = 1) {
  Buffer buffer(test_context().device, Category::workspace, rows, cols, DType::bf16);
  fill_uniform(buffer, 7, number, bound);
  return buffer;
}

/// Every number of bf16 is the nearest to the wanted one, but for errors of f32 where that lies
/// about halfway between two; one of f32 is the wanted one but for those.
testing::AssertionResult nearest(Tensor got, const std::vector<double>& want,
                                 double rounding = 2e-6) {
  const std::vector<double> values = doubles(got);
  if (values.size() != want.size()) return testing::AssertionFailure() << "another count";
  for (std::size_t i = 0; i < want.size(); ++i) {
    const bool wide = got.type() == DType::f32;
    const double half_ulp = want[i] == 0 || wide ? 0 : std::ldexp(1, std::ilogb(want[i]) - 8);
    if (std::abs(values[i] - want[i]) <= half_ulp + rounding * std::max(1.0, std::abs(want[i])))
      continue;
    return testing::AssertionFailure() << "element " << i << " of " << want.size() << " is "
                                       << values[i] << ", not " << want[i];
  }
  return testing::AssertionSuccess();
}

ONE_RANK_TEST(Bf16, IsCopiedInRoundedAndOutWidened) {
  for_sizes([](std::int64_t rows, std::int64_t cols) {
    const Buffer wide = random_buffer(rows, cols, 1), direct = bf16_buffer(rows, cols, 1);
    const Buffer operation = bf16_buffer(rows, cols, 2), host = bf16_buffer(rows, cols, 3);
    round_to_bf16(wide, operation);
    copy_in(copy_out(wide), host);
    EXPECT_EQ(direct.tensor().bytes(), 2 * rows * cols);
    EXPECT_EQ(hash(operation), hash(direct));
    EXPECT_EQ(hash(host), hash(direct));
    EXPECT_TRUE(nearest(direct, doubles(wide)));
    EXPECT_NEAR(sum(direct), sum(wide), 2e-3 * static_cast<double>(rows * cols));
  });
  EXPECT_THROW(round_to_bf16(bf16_buffer(1, 8, 1), random_buffer(1, 8, 1)), Failure);
}

ONE_RANK_TEST(Bf16, SumsBiasesAndScales) {
  for_sizes([](std::int64_t rows, std::int64_t cols) {
    const Buffer a = bf16_buffer(rows, cols, 1), b = bf16_buffer(rows, cols, 2);
    const Buffer scaled = bf16_buffer(rows, cols, 3), biased = bf16_buffer(rows, cols, 4);
    const Buffer bias = bf16_buffer(1, cols, 5);
    const Buffer sums = bf16_buffer(1, cols, 6), wide_sums = random_buffer(1, cols, 7);
    const auto va = doubles(a), vb = doubles(b), vbias = doubles(bias);
    std::vector<double> added, times = doubles(scaled), with_bias = doubles(biased);
    std::vector<double> want_sums = doubles(sums), want_wide = doubles(wide_sums);
    for (std::size_t i = 0; i < va.size(); ++i) {
      added.push_back(va[i] + vb[i]);
      times[i] *= static_cast<double>(0.7f);
      with_bias[i] += vbias[i % at(cols)];
      want_sums[i % at(cols)] += va[i];
      want_wide[i % at(cols)] += va[i];
    }
    add_column_sums(a, sums);
    EXPECT_TRUE(nearest(sums, want_sums));
    add_column_sums(a, wide_sums);
    EXPECT_TRUE(nearest(wide_sums, want_wide));
    add(a, b);
    EXPECT_TRUE(nearest(a, added));
    scale(scaled, 0.7f);
    EXPECT_TRUE(nearest(scaled, times));
    add_bias(biased, bias);
    EXPECT_TRUE(nearest(biased, with_bias));
  });
}

double gelu(double z) {
  return 0.5 * z * (1 + std::tanh(std::sqrt(2 / M_PI) * (z + 0.044715 * z * z * z)));
}

ONE_RANK_TEST(Bf16, GeluAndItsSlope) {
  for_sizes([](std::int64_t rows, std::int64_t cols) {
    for (const bool has_bias : {true, false}) {
      const Buffer z = bf16_buffer(rows, cols, 1, 6), y = bf16_buffer(rows, cols, 2);
      const Buffer bias = has_bias ? bf16_buffer(1, cols, 3) : Buffer();
      std::vector<double> want_z = doubles(z), want_y;
      const std::vector<double> b = doubles(bias);
      for (std::size_t i = 0; i < want_z.size(); ++i) {
        if (has_bias) want_z[i] += b[i % at(cols)];
        want_y.push_back(gelu(want_z[i]));
      }
      bias_gelu(z, bias, y);
      EXPECT_TRUE(nearest(z, want_z));
      EXPECT_TRUE(nearest(y, want_y));
    }
    const Buffer z = bf16_buffer(rows, cols, 4, 6), dy = bf16_buffer(rows, cols, 5);
    std::vector<double> want = doubles(dy);
    const std::vector<double> where = doubles(z);
    constexpr double h = 1e-5;
    for (std::size_t i = 0; i < want.size(); ++i) {
      want[i] *= (gelu(where[i] + h) - gelu(where[i] - h)) / (2 * h);
    }
    gelu_backward(z, dy);
    EXPECT_TRUE(nearest(z, want));
  });
}

/// All three products of m x k by k x n, with the result in `type`.
void check_products(std::int64_t m, std::int64_t k, std::int64_t n, DType type) {
  SCOPED_TRACE(fmt::format("{} x {} x {} into {}", m, k, n, name_of(type)));
  const Buffer a = bf16_buffer(m, k, 1), b = bf16_buffer(k, n, 2);
  const Buffer b_turned = bf16_buffer(n, k, 3), a_turned = bf16_buffer(k, m, 4);
  const auto result = [&](std::uint32_t number) {
    Buffer c(test_context().device, Category::workspace, m, n, type);
    fill_uniform(c, 7, number, 1);
    return c;
  };
  const Buffer plain = result(5), transposed = result(6), added = result(7);
  const auto va = doubles(a), vb = doubles(b), vbt = doubles(b_turned), vat = doubles(a_turned);
  std::vector<double> want(at(m * n)), want_transposed(want), want_added = doubles(added);
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t x = 0; x < k; ++x) {
        want[at(i * n + j)] += va[at(i * k + x)] * vb[at(x * n + j)];
        want_transposed[at(i * n + j)] += va[at(i * k + x)] * vbt[at(j * k + x)];
        want_added[at(i * n + j)] += vat[at(x * m + i)] * vb[at(x * n + j)];
      }
    }
  }
  const double rounding = k > 1000 ? 1e-5 : 2e-6;
  multiply(a, b, plain);
  EXPECT_TRUE(nearest(plain, want, rounding));
  multiply_transposed(a, b_turned, transposed);
  EXPECT_TRUE(nearest(transposed, want_transposed, rounding));
  add_transposed_product(a_turned, b, added);
  EXPECT_TRUE(nearest(added, want_added, rounding));
}

ONE_RANK_TEST(Bf16, MatrixProducts) {
  for (const DType type : {DType::bf16, DType::f32}) {
    for (const std::int64_t m : awkward) {
      for_sizes([&](std::int64_t k, std::int64_t n) { check_products(m, k, n, type); });
    }
    // Over the edge of a tile in two directions each.
    check_products(515, 1030, 2, type);
    check_products(3, 1025, 515, type);
    check_products(513, 3, 1026, type);
  }
}

ONE_RANK_TEST(Bf16, SoftmaxCrossEntropy) {
  for (const float bound : {3.0f, 1e4f}) {
    for_sizes([bound](std::int64_t rows, std::int64_t cols) {
      if (cols == 0) return;
      const Buffer logits = bf16_buffer(rows, cols, 1, bound), loss = random_buffer(1, rows, 2);
      std::vector<std::int64_t> labels;
      std::vector<double> want = doubles(logits), want_loss;
      for (std::int64_t r = 0; r < rows; ++r) {
        const auto row = std::span(want).subspan(at(r * cols), at(cols));
        double& label = row[at(labels.emplace_back((r * 7 + 3) % cols))];
        const double top = *std::max_element(row.begin(), row.end());
        double total = 0;
        for (const double x : row) total += std::exp(x - top);
        want_loss.push_back(std::log(total) + top - label);
        for (double& x : row) x = std::exp(x - top) / total;
        label -= 1;
      }
      softmax_cross_entropy(logits, labels_buffer(labels), loss);
      EXPECT_TRUE(nearest(logits, want));
      EXPECT_TRUE(nearest(loss, want_loss));
    });
  }
}

ONE_RANK_TEST(Bf16, AdamTakesItsGradientAndItsParameters) {
  Device& device = test_context().device;
  for (const std::int64_t count : awkward) {
    const Buffer gradient = bf16_buffer(1, count, 1), wide(device, Category::workspace, 1, count);
    copy_in(copy_out(gradient), wide);
    const Buffer p = random_buffer(1, count, 2), want = random_buffer(1, count, 2);
    const Buffer narrow = bf16_buffer(1, count, 2);
    AdamState of_p(device, count), of_want(device, count), of_narrow(device, count);
    const std::vector<double> before = doubles(narrow);
    adam_step(want, wide, 4, of_want, {});
    adam_step(p, gradient, 4, of_p, {});
    adam_step(narrow, gradient, 4, of_narrow, {});
    EXPECT_EQ(hash(p), hash(want)) << "the gradient is the same number in either type";
    EXPECT_EQ(hash(of_narrow.m), hash(of_want.m));
    std::vector<double> moved = before;
    const auto g = doubles(gradient);
    for (std::size_t i = 0; i < g.size(); ++i) moved[i] -= 1e-3 * g[i] / (std::abs(g[i]) + 4e-8);
    EXPECT_TRUE(nearest(narrow, moved));
  }
}

// Updates of 1e-4 are less than half of the last place of bf16 from 1/16 on. Steps without a copy
// in f32 lose each of them; the copy adds up a hundred.
ONE_RANK_TEST(Bf16, WithoutMasterWeightsNothingMoves) {
  Device& device = test_context().device;
  constexpr std::int64_t count = 33;
  const Buffer gradient = bf16_buffer(1, count, 1);
  copy_in(std::vector<float>(count, 1), gradient);
  std::vector<float> first(count);
  for (std::int64_t i = 0; i < count; ++i) first[at(i)] = 0.0625f + static_cast<float>(i) / 64;
  const auto end = [&](DType parameters_of_state) {
    const Buffer parameters(device, Category::parameter, 1, count, DType::bf16);
    copy_in(first, parameters);
    AdamState state(device, count, parameters_of_state);
    copy_in(copy_out(parameters), state.weights(parameters));
    for (int k = 0; k < 100; ++k)
      adam_step(parameters, gradient, 1, state, {.learning_rate = 1e-4f});
    return copy_out(parameters);
  };
  EXPECT_EQ(end(DType::f32), first) << "without a copy";
  const std::vector<float> moved = end(DType::bf16);
  for (std::int64_t i = 0; i < count; ++i) {
    EXPECT_NEAR(moved[at(i)], first[at(i)] - 0.01f, std::ldexp(first[at(i)], -8)) << i;
  }
}

ONE_RANK_TEST(Bf16, RefusesAMixtureOfTypes) {
  const Buffer narrow = bf16_buffer(2, 2, 1), wide = random_buffer(2, 2, 1);
  EXPECT_THROW(add(narrow, wide), Failure);
  EXPECT_THROW(copy(narrow, wide), Failure);
  EXPECT_THROW(add_bias(narrow, random_buffer(1, 2, 1)), Failure);
  EXPECT_THROW(bias_gelu(narrow, random_buffer(1, 2, 1), narrow), Failure);
  EXPECT_THROW(gelu_backward(narrow, wide), Failure);
  EXPECT_THROW(multiply(narrow, wide, wide), Failure);
  EXPECT_THROW(multiply(wide, wide, narrow), Failure);
  EXPECT_THROW(narrow.tensor().as<float>(), Failure);
  EXPECT_THROW(wide.tensor().as<Bf16>(), Failure);
  EXPECT_THROW(copy_out_i64(wide), Failure);
}

}  // namespace
}  // namespace fivecuts
