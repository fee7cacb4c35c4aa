// The loss, predictions and Adam against plain loops in double precision.
#include <algorithm>
#include <span>

#include "common/tests/helpers.hpp"

namespace fivecuts {
namespace {

constexpr double rounding = 1e-6;  // of numbers of size 1 after a few operations

std::vector<std::int64_t> some_labels(std::int64_t rows, std::int64_t classes) {
  std::vector<std::int64_t> labels;
  for (std::int64_t r = 0; r < rows; ++r) labels.push_back((r * 7 + 3) % classes);
  return labels;
}

ONE_RANK_TEST(Loss, SoftmaxCrossEntropy) {
  for (const float bound : {3.0f, 1e4f}) {
    for_sizes([bound](std::int64_t rows, std::int64_t cols) {
      if (cols == 0) return;
      const Buffer logits = random_buffer(rows, cols, 1, bound), loss = random_buffer(1, rows, 2);
      const auto labels = some_labels(rows, cols);
      std::vector<double> want = doubles(logits), want_loss;
      for (std::int64_t r = 0; r < rows; ++r) {
        const auto row = std::span(want).subspan(at(r * cols), at(cols));
        const double top = *std::max_element(row.begin(), row.end());
        double sum = 0;
        for (const double x : row) sum += std::exp(x - top);
        want_loss.push_back(std::log(sum) + top - row[at(labels[at(r)])]);
        for (double& x : row) x = std::exp(x - top) / sum;
        row[at(labels[at(r)])] -= 1;
      }
      softmax_cross_entropy(logits, labels_buffer(labels), loss);
      EXPECT_LE(worst_error(logits, want), rounding);
      EXPECT_LE(worst_error(loss, want_loss), rounding);
    });
  }
  const Buffer one_class = random_buffer(3, 1, 1, 1e4f), loss = random_buffer(1, 3, 2);
  softmax_cross_entropy(one_class, labels_buffer({0, 0, 0}), loss);
  EXPECT_EQ(worst_error(one_class, {0, 0, 0}) + worst_error(loss, {0, 0, 0}), 0);
}

// A GPU has nobody to tell: there the row is NaN, which no comparison with golden lets pass.
ONE_RANK_TEST(Loss, RefusesALabelThatIsNoClass) {
  const bool tells = test_context().device.on_host();
  for (const std::int64_t wrong : {std::int64_t{-1}, std::int64_t{10}}) {
    const Buffer logits = random_buffer(2, 10, 1), loss = random_buffer(1, 2, 2);
    const std::uint64_t before = hash(logits);
    const auto compute = [&] {
      softmax_cross_entropy(logits, labels_buffer({3, wrong}), loss);
    };
    if (tells) {
      EXPECT_THROW(compute(), Failure);
      EXPECT_EQ(hash(logits), before);
      continue;
    }
    compute();
    for (const float value : copy_out(logits.tensor().part(10, 10))) {
      EXPECT_TRUE(std::isnan(value));
    }
    EXPECT_TRUE(std::isfinite(copy_out(loss)[0]) && std::isnan(copy_out(loss)[1]));
  }
  if (!tells) return;
  EXPECT_THROW(
      softmax_cross_entropy(random_buffer(1, 0, 1), labels_buffer({0}), random_buffer(1, 1, 1)),
      Failure);
}

ONE_RANK_TEST(Loss, CountsPredictions) {
  const Buffer logits = random_buffer(5, 3, 1);
  copy_in(std::vector<float>{1, 2, 3, 9, -9, 9, -3, -2, -1, nan_f, nan_f, nan_f, 0, nan_f, 1},
          logits);
  // Among equals the first counts, and a row that is not a number predicts nothing.
  EXPECT_EQ(count_equal_argmax(logits, labels_buffer({2, 0, 2, 0, 0})), 3);
  EXPECT_EQ(count_equal_argmax(logits, labels_buffer({1, 2, 0, 1, 1})), 0);
  EXPECT_EQ(count_equal_argmax(random_buffer(0, 3, 1), labels_buffer({})), 0);
  EXPECT_EQ(count_equal_argmax(random_buffer(1, 0, 1), labels_buffer({0})), 0);
}

ONE_RANK_TEST(Adam, MatchesDoubleForSeveralSteps) {
  const AdamOptions o{1e-2f, 0.8f, 0.99f, 1e-6f};
  const double beta1 = static_cast<double>(o.beta1), beta2 = static_cast<double>(o.beta2);
  for (const std::int64_t count : awkward) {
    const Buffer p = random_buffer(1, count, 1), m = random_buffer(1, count, 2),
                 v = random_buffer(1, count, 3);
    zero(m);
    zero(v);
    std::vector<double> want = doubles(p), want_m(at(count)), want_v(at(count));
    for (int t = 1; t <= 10; ++t) {
      const Buffer g = random_buffer(1, count, static_cast<std::uint32_t>(10 + t), 4);
      const std::vector<double> gradient = doubles(g);
      for (std::size_t i = 0; i < want.size(); ++i) {
        const double scaled = gradient[i] * 0.25;
        want_m[i] = beta1 * want_m[i] + (1 - beta1) * scaled;
        want_v[i] = beta2 * want_v[i] + (1 - beta2) * scaled * scaled;
        want[i] -=
            static_cast<double>(o.learning_rate) * want_m[i] / (1 - std::pow(beta1, t)) /
            (std::sqrt(want_v[i] / (1 - std::pow(beta2, t))) + static_cast<double>(o.epsilon));
      }
      adam(p, g, m, v, o, t, 0.25f);
      EXPECT_LE(worst_error(p, want), rounding);
      EXPECT_LE(worst_error(m, want_m), rounding);
      EXPECT_LE(worst_error(v, want_v), rounding);
    }
  }
  const Buffer p = random_buffer(1, 1, 1);
  EXPECT_THROW(adam(p, p, p, p, o, 0, 1), Failure) << "steps count from 1";
}

}  // namespace
}  // namespace fivecuts
