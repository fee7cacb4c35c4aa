// Every operation against plain loops in double precision, on sizes around the width of the vector
// loops.
#include <bit>
#include <functional>

#include "common/compute/functors.hpp"
#include "common/tests/helpers.hpp"

namespace fivecuts {
namespace {

constexpr double rounding = 1e-6;  // of numbers of size 1 after a few operations

double gelu(double z) {
  return 0.5 * z * (1 + std::tanh(std::sqrt(2 / M_PI) * (z + 0.044715 * z * z * z)));
}

double gelu_slope(double z) {
  const double h = 1e-5;
  return (gelu(z + h) - gelu(z - h)) / (2 * h);
}

// The worst of the floats looked at errs by 2 units in the last place, as functors.hpp says.
ONE_RANK_TEST(Functors, ExpIsRightToTwoUnitsInTheLastPlace) {
  double worst = 0;
  float where = 0;
  const auto look = [&](float x) {
    const double want = std::exp(static_cast<double>(x));
    const float rounded = static_cast<float>(want);
    const double ulp =
        static_cast<double>(std::nextafter(rounded, HUGE_VALF)) - static_cast<double>(rounded);
    const double error = std::abs(static_cast<double>(detail::exp_(x)) - want) / ulp;
    if (!(error <= worst)) worst = error, where = x;
  };
  const auto top = std::bit_cast<std::uint32_t>(88.3f);
  for (std::uint32_t bits = 0; bits <= top; bits += 1009) {
    look(std::bit_cast<float>(bits));
    if (std::bit_cast<float>(bits) <= 87.3f) look(-std::bit_cast<float>(bits));
  }
  for (float x = -87.3f; x < 88.3f; x += 1e-4f) look(x);
  EXPECT_LE(worst, 2.0) << "at " << where;
  EXPECT_EQ(detail::exp_(0.0f), 1.0f);
  EXPECT_TRUE(std::isnan(detail::exp_(nan_f)));
  EXPECT_EQ(detail::exp_(-HUGE_VALF), detail::exp_(-87.3f));
  EXPECT_EQ(detail::exp_(1e30f), detail::exp_(88.3f));
  EXPECT_TRUE(std::isfinite(detail::exp_(HUGE_VALF)));
}

ONE_RANK_TEST(Operations, BiasGelu) {
  for_sizes([](std::int64_t rows, std::int64_t cols) {
    for (const bool has_bias : {true, false}) {
      const Buffer z = random_buffer(rows, cols, 1, 6), y = random_buffer(rows, cols, 2);
      const Buffer bias = has_bias ? random_buffer(1, cols, 3) : Buffer();
      std::vector<double> want_z = doubles(z), want_y;
      const std::vector<double> b = doubles(bias);
      for (std::size_t i = 0; i < want_z.size(); ++i) {
        if (has_bias) want_z[i] += b[i % at(cols)];
        want_y.push_back(gelu(want_z[i]));
      }
      bias_gelu(z, bias, y);
      EXPECT_LE(worst_error(z, want_z), rounding);
      EXPECT_LE(worst_error(y, want_y), rounding);
    }
  });
}

ONE_RANK_TEST(Operations, GeluBackwardAgainstFiniteDifferences) {
  for_sizes([](std::int64_t rows, std::int64_t cols) {
    const Buffer z = random_buffer(rows, cols, 1, 6), dy = random_buffer(rows, cols, 2);
    std::vector<double> want = doubles(z);
    const std::vector<double> slopes = doubles(dy);
    for (std::size_t i = 0; i < want.size(); ++i) want[i] = slopes[i] * gelu_slope(want[i]);
    gelu_backward(z, dy);
    EXPECT_LE(worst_error(z, want), 2 * rounding);
  });
}

ONE_RANK_TEST(Operations, GeluHasItsLimitsFarOut) {
  for (const float far : {10.0f, 11.0f, 100.0f, 1e6f, 1e13f, 1e20f, 3e38f, HUGE_VALF}) {
    const Buffer z = random_buffer(1, 2, 1), y = random_buffer(1, 2, 1),
                 dy = random_buffer(1, 2, 1);
    copy_in(std::vector{far, -far}, z);
    copy_in(std::vector{1.0f, 1.0f}, dy);
    bias_gelu(z, Tensor(), y);
    gelu_backward(z, dy);
    EXPECT_EQ(copy_out(y)[0], far);
    EXPECT_NEAR(copy_out(y)[1], 0, 1e-20) << far;
    EXPECT_EQ(copy_out(z)[0], 1) << far;
    EXPECT_NEAR(copy_out(z)[1], 0, 1e-20) << far;
  }
}

ONE_RANK_TEST(Operations, SumsBiasesAndScales) {
  for_sizes([](std::int64_t rows, std::int64_t cols) {
    const Buffer a = random_buffer(rows, cols, 1), b = random_buffer(rows, cols, 2);
    const Buffer bias = random_buffer(1, cols, 3), sums = random_buffer(1, cols, 4);
    const std::vector<double> from = doubles(a), other = doubles(b), add_on = doubles(bias);
    std::vector<double> want_sums = doubles(sums), want = from;
    double total = 0;
    for (std::size_t i = 0; i < from.size(); ++i) {
      want_sums[i % at(cols)] += from[i];
      total += from[i];
      want[i] = 0.5 * (from[i] + other[i] + add_on[i % at(cols)]);
    }
    add_column_sums(a, sums);
    EXPECT_LE(worst_error(sums, want_sums), 4 * rounding);
    EXPECT_NEAR(sum(a), total, 1e-9);
    add(a, b);
    add_bias(a, bias);
    scale(a, 0.5f);
    EXPECT_LE(worst_error(a, want), rounding);
    copy(b, a);
    EXPECT_EQ(hash(a), hash(b));
    zero(a);
    EXPECT_EQ(worst_error(a, std::vector<double>(from.size(), 0.0)), 0);
  });
  const Buffer labels = labels_buffer({1, 2, 3});
  add(labels, labels_buffer({1LL << 60, 0, -5}));
  EXPECT_EQ(copy_out_i64(labels), (std::vector<std::int64_t>{(1LL << 60) + 1, 2, -2}));
}

ONE_RANK_TEST(Operations, Maximum) {
  for_sizes([](std::int64_t rows, std::int64_t cols) {
    const Buffer a = random_buffer(rows, cols, 1), b = random_buffer(rows, cols, 2);
    const Buffer narrow_a(test_context().device, Category::workspace, rows, cols, DType::bf16),
        narrow_b(test_context().device, Category::workspace, rows, cols, DType::bf16);
    round_to_bf16(a, narrow_a);
    round_to_bf16(b, narrow_b);
    for (const auto& [to, from] : {std::pair<Tensor, Tensor>(a, b), {narrow_a, narrow_b}}) {
      std::vector<double> want = doubles(to);
      const std::vector<double> other = doubles(from);
      for (std::size_t i = 0; i < want.size(); ++i) want[i] = std::max(want[i], other[i]);
      maximum(to, from);
      EXPECT_EQ(doubles(to), want);
    }
  });
  const Buffer whole = labels_buffer({(1LL << 60) + 1, -7, 3});
  maximum(whole, labels_buffer({1LL << 60, -5, 3}));
  EXPECT_EQ(copy_out_i64(whole), (std::vector<std::int64_t>{(1LL << 60) + 1, -5, 3}));
  EXPECT_THROW(copy_out_i64(random_buffer(1, 1, 1)), Failure);
  EXPECT_THROW(maximum(random_buffer(1, 2, 1), random_buffer(1, 3, 1)), Failure);
}

// Sizes around the blocks in which it works; whole numbers, so that each type holds them exactly.
ONE_RANK_TEST(Operations, AddAllAndMaximumAll) {
  Device& device = test_context().device;
  for (const DType type : {DType::f32, DType::bf16, DType::i64}) {
    for (const std::int64_t count : {0, 1, 33, 1023, 1024, 1025, 2500}) {
      for (const bool largest : {false, true}) {
        std::vector<Buffer> buffers;
        std::vector<Tensor> all;
        for (std::int64_t k = 0; k < 3; ++k) {
          all.push_back(buffers.emplace_back(device, Category::workspace, 1, count, type));
          std::vector<std::int64_t> numbers;
          for (std::int64_t i = 0; i < count; ++i) numbers.push_back((i + k) % 3 - 1 + i % 50);
          if (type == DType::i64) {
            copy_in(numbers, all.back());
          } else {
            copy_in(std::vector<float>(numbers.begin(), numbers.end()), all.back());
          }
        }
        largest ? maximum_all(all) : add_all(all);
        for (const Tensor& t : all) {
          const std::vector<float> got = type == DType::i64 ? std::vector<float>() : copy_out(t);
          const std::vector<std::int64_t> whole =
              type == DType::i64 ? copy_out_i64(t)
                                 : std::vector<std::int64_t>(got.begin(), got.end());
          for (std::int64_t i = 0; i < count; ++i) {
            EXPECT_EQ(whole[static_cast<std::size_t>(i)], largest ? 1 + i % 50 : 3 * (i % 50));
          }
        }
      }
    }
  }
  const Buffer one(device, Category::workspace, 1, 2), other(device, Category::workspace, 1, 3);
  EXPECT_THROW(add_all(std::vector<Tensor>{one, other}), Failure);
}

// More elements than sums, fewer, and none; and sums that hold something before.
ONE_RANK_TEST(Operations, AddsSquaresToTheirSums) {
  for (const std::int64_t sums : {1, 7, 256, 300}) {
    for (const std::int64_t count : {0, 1, 299, 300, 1857}) {
      const Buffer from = random_buffer(1, count, 1), to = random_buffer(1, sums, 2);
      const Buffer narrow(test_context().device, Category::workspace, 1, count, DType::bf16);
      const Buffer to_2 = random_buffer(1, sums, 2);
      round_to_bf16(from, narrow);
      const std::vector<double> values = doubles(from), rounded = doubles(narrow);
      std::vector<double> want = doubles(to), want_2 = want;
      for (std::int64_t i = 0; i < count; ++i) {
        want[at(i % sums)] += std::pow(values[at(i)], 2);
        want_2[at(i % sums)] += std::pow(rounded[at(i)], 2);
      }
      add_square_sums(from, to);
      add_square_sums(narrow, to_2);
      EXPECT_LE(worst_error(to, want), 30 * rounding) << count << " in " << sums;
      EXPECT_LE(worst_error(to_2, want_2), 30 * rounding) << count << " in " << sums;
    }
  }
  EXPECT_THROW(add_square_sums(random_buffer(1, 3, 1), Tensor()), Failure);
}

ONE_RANK_TEST(Operations, MatrixProducts) {
  for (const std::int64_t m : awkward) {
    for_sizes([m](std::int64_t k, std::int64_t n) {
      const Buffer a = random_buffer(m, k, 1), b = random_buffer(k, n, 2),
                   bt = random_buffer(n, k, 3);
      const Buffer at_ = random_buffer(k, m, 4), c = random_buffer(m, n, 5),
                   start = random_buffer(m, n, 6);
      const std::vector<double> va = doubles(a), vb = doubles(b), vbt = doubles(bt),
                                vat = doubles(at_);
      std::vector<double> plain(at(m * n)), transposed(at(m * n)), sum = doubles(start);
      for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
          for (std::int64_t x = 0; x < k; ++x) {
            plain[at(i * n + j)] += va[at(i * k + x)] * vb[at(x * n + j)];
            transposed[at(i * n + j)] += va[at(i * k + x)] * vbt[at(j * k + x)];
            sum[at(i * n + j)] += vat[at(x * m + i)] * vb[at(x * n + j)];
          }
        }
      }
      multiply(a, b, c);
      EXPECT_LE(worst_error(c, plain), 2 * rounding);
      multiply_transposed(a, bt, c);
      EXPECT_LE(worst_error(c, transposed), 2 * rounding);
      add_transposed_product(at_, b, start);
      EXPECT_LE(worst_error(start, sum), 2 * rounding);
    });
  }
}

/// f(values) computes in place; a NaN must come out where it went in, whichever lane it was in.
void expect_nan_stays(const std::function<void(Tensor)>& f, std::int64_t whole_rows_of = 1) {
  constexpr std::int64_t count = 66;
  for (std::int64_t bad = 0; bad < count; ++bad) {
    const Buffer values = random_buffer(1, count, 1);
    copy_in(std::span(&nan_f, 1), values.tensor().part(bad, 1));
    f(values);
    const std::vector<float> out = copy_out(values);
    for (std::int64_t i = 0; i < count; ++i) {
      EXPECT_EQ(std::isnan(out[at(i)]), i / whole_rows_of == bad / whole_rows_of)
          << bad << " -> " << i;
    }
  }
}

ONE_RANK_TEST(Operations, NanStaysNan) {
#ifdef __GNUC__
  static_assert(__FINITE_MATH_ONLY__ == 0, "-ffast-math or a part of it: NaN would get lost");
#endif
  const Buffer one = random_buffer(1, 66, 2), m = random_buffer(1, 66, 3),
               v = random_buffer(1, 66, 4);
  const auto reset = [&] {
    copy_in(std::vector<float>(66, 1), one);
    zero(m);
    zero(v);
  };
  expect_nan_stays([&](Tensor z) {
    bias_gelu(z, Tensor(), m);
    copy(m, z);
  });
  expect_nan_stays([&](Tensor z) {
    reset();
    gelu_backward(z, one);
  });
  expect_nan_stays([&](Tensor dy) {
    reset();
    gelu_backward(one, dy);
    copy(one, dy);
  });
  expect_nan_stays([&](Tensor x) {
    reset();
    add(x, one);
    scale(x, 2);
    add_bias(x, one);
    add_column_sums(x, m);
    copy(m, x);
  });
  expect_nan_stays([&](Tensor parameter) {
    reset();
    adam(parameter, one, m, v, {}, 1, 1);
  });
  expect_nan_stays([&](Tensor gradient) {
    reset();
    adam(one, gradient, m, v, {}, 1, 1);
    EXPECT_TRUE(std::isnan(sum(m)) && std::isnan(sum(v)));
    copy(one, gradient);
  });
  const auto loss_of_two_rows = [](Tensor z) {
    const Buffer loss = random_buffer(1, 2, 3);
    softmax_cross_entropy(z.shaped(2, 33), labels_buffer({0, 32}), loss);
    EXPECT_EQ(std::isnan(copy_out(loss)[0]), std::isnan(copy_out(z)[0]));
    EXPECT_EQ(std::isnan(copy_out(loss)[1]), std::isnan(copy_out(z)[33]));
  };
  expect_nan_stays(loss_of_two_rows, 33);
}

ONE_RANK_TEST(Operations, RefuseWrongShapes) {
  const Buffer a = random_buffer(2, 3, 1), b = random_buffer(2, 2, 1),
               labels = labels_buffer({0, 1, 2, 0});
  EXPECT_THROW(copy(a, b), Failure);
  EXPECT_THROW(add(a, b), Failure);
  EXPECT_THROW(copy(b, labels), Failure);
  EXPECT_THROW(copy_in(std::vector<float>(5), a), Failure);
  EXPECT_THROW(add_bias(a, b), Failure);
  EXPECT_THROW(bias_gelu(a, b, a), Failure);
  EXPECT_THROW(gelu_backward(a, b), Failure);
  EXPECT_THROW(add_column_sums(a, b), Failure);
  EXPECT_THROW(multiply(a, b, a), Failure);
  EXPECT_THROW(multiply(b, a, b), Failure);
  EXPECT_THROW(multiply_transposed(a, b, b), Failure);
  EXPECT_THROW(add_transposed_product(a, b, b), Failure);
  EXPECT_THROW(scale(labels, 2), Failure);
  EXPECT_THROW(count_equal_argmax(a, labels), Failure);
  EXPECT_THROW(adam(a, b, a, a, {}, 1, 1), Failure);
}

}  // namespace
}  // namespace fivecuts
