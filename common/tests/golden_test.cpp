// The reference against finite differences, then the layers in single precision against the
// reference.
#include "common/model/golden.hpp"
#include "common/model/adam.hpp"
#include "common/model/compare.hpp"
#include "common/model/mlp.hpp"
#include "common/tests/helpers.hpp"

namespace fivecuts {
namespace {

constexpr std::uint64_t seed = 11;

struct Case {
  std::string name;
  ModelShape shape;
};

std::vector<Case> cases() {
  return {{"linear", {{5, 4, false, false, false}}},
          {"linear with bias", {{5, 4, true, false, false}}},
          {"GELU without bias", {{5, 4, false, true, false}}},
          {"GELU", {{5, 4, true, true, false}}},
          {"residual", {{5, 5, true, false, true}}},
          {"GELU and residual", {{5, 5, true, true, true}}},
          {"three layers", mlp_shape(5, 7, 4, 3)},
          {"three layers, residual, no bias", mlp_shape(7, 7, 4, 3, false, true)},
          {"three layers, residual", mlp_shape(5, 7, 4, 3, true, true)}};
}

std::vector<std::int64_t> labels_of(std::int64_t rows, std::int64_t classes) {
  std::vector<std::int64_t> labels;
  for (std::int64_t r = 0; r < rows; ++r) labels.push_back((3 * r + 1) % classes);
  return labels;
}

golden::Matrix inputs(std::int64_t rows, std::int64_t cols) {
  return golden::matrix(copy_out(random_buffer(rows, cols, 99, 2)), cols);
}

/// Starting biases are zero, and a sign or a place lost on a zero does not show.
void move_biases(golden::Model& model) {
  for (golden::Layer& layer : model.layers()) {
    for (Eigen::Index i = 0; i < layer.b.size(); ++i)
      layer.b(i) = 0.25 * static_cast<double>(i % 5) - 0.5;
  }
}

ONE_RANK_TEST(Golden, GradientsMatchFiniteDifferences) {
  constexpr double h = 1e-5;
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    golden::Model model(c.shape, seed);
    move_biases(model);
    golden::Matrix x = inputs(3, c.shape.front().in), dx;
    const auto labels = labels_of(3, c.shape.back().out);
    const std::vector<golden::Layer> gradients = model.gradient(x, labels, &dx);
    const auto slope = [&](double& at) {
      const double start = at;
      at = start + h;
      const double above = model.loss(x, labels);
      at = start - h;
      const double below = model.loss(x, labels);
      at = start;
      return (above - below) / (2 * h);
    };
    for (std::size_t k = 0; k < gradients.size(); ++k) {
      golden::Layer& layer = model.layers()[k];
      ASSERT_EQ(gradients[k].w.size(), layer.w.size());
      ASSERT_EQ(gradients[k].b.size(), layer.b.size());
      for (Eigen::Index i = 0; i < layer.w.size(); ++i) {
        EXPECT_NEAR(gradients[k].w.data()[i], slope(layer.w.data()[i]), 1e-8)
            << "layer " << k << ", w " << i;
      }
      for (Eigen::Index i = 0; i < layer.b.size(); ++i) {
        EXPECT_NEAR(gradients[k].b(i), slope(layer.b(i)), 1e-8) << "layer " << k << ", b " << i;
      }
    }
    for (Eigen::Index i = 0; i < x.size(); ++i)
      EXPECT_NEAR(dx.data()[i], slope(x.data()[i]), 1e-8) << "dx " << i;
  }
}

ONE_RANK_TEST(Golden, LossIsTheSumOfMinusLogSoftmax) {
  golden::Model model({{2, 3, true, false, false}}, seed);
  model.layers()[0].w << 1, 2, 3, 4, 5, 6;
  model.layers()[0].b << 0.5, 0, -0.5;
  golden::Matrix x(2, 2);
  x << 1, 0, 0, -1;  // logits 1.5 2 2.5 and -3.5 -5 -6.5
  const double first = std::log(std::exp(-0.5) + 1 + std::exp(0.5));
  const double second = std::log(1 + std::exp(-1.5) + std::exp(-3));
  const std::vector<std::int64_t> labels{1, 0};
  EXPECT_NEAR(model.loss(x, labels), first + second, 1e-12);
  EXPECT_EQ(model.accuracy(x, labels), 0.5);
}

/// The layers under test, with the weights of `model`.
struct Net {
  Net(ModelShape of, const golden::Model& model) : shape(std::move(of)) {
    Device& device = test_context().device;
    for (std::size_t k = 0; k < shape.size(); ++k) {
      const std::vector<double> values = golden::flat(model.layers()[k]);
      parameters.emplace_back(device, Category::parameter, 1, shape[k].parameters());
      gradients.emplace_back(device, Category::gradient, 1, shape[k].parameters());
      copy_in(std::vector<float>(values.begin(), values.end()), parameters.back());
      zero(gradients.back());
    }
  }

  /// Adds the rows' gradients; returns their losses' sum. `own_dy`: the gradient of the output
  /// arrives in memory of its own, not where the output was.
  double pass(Tensor x, const std::vector<std::int64_t>& labels, Tensor dx, bool own_dy = false) {
    Device& device = test_context().device;
    std::vector<Saved> saved;
    for (std::size_t k = 0; k < shape.size(); ++k) {
      saved.emplace_back(device, shape[k], x.rows());
      forward(shape[k], parameters[k], k == 0 ? x : saved[k - 1].output(), saved[k]);
    }
    const Buffer loss(device, Category::workspace, 1, x.rows());
    Tensor dy = saved.back().output();
    softmax_cross_entropy(dy, labels_buffer(labels), loss);
    std::vector<Buffer> below;
    if (own_dy) {
      below.emplace_back(device, Category::workspace, dy.rows(), dy.cols());
      copy(dy, below.back());
      dy = below.back();
    }
    for (std::size_t k = shape.size(); k-- > 0;) {
      if (k > 0) below.emplace_back(device, Category::workspace, x.rows(), shape[k].in);
      const Tensor next = k > 0 ? below.back().tensor() : dx;
      backward_input(shape[k], parameters[k], saved[k], dy, next);
      backward_weight(shape[k], saved[k], gradients[k]);
      dy = next;
    }
    return sum(loss);
  }

  ModelShape shape;
  std::vector<Buffer> parameters, gradients;
};

void expect_golden(const std::string& what, Tensor got, const std::vector<double>& want,
                   Tolerance tolerance = one_pass) {
  const Verdict verdict = compare(test_context().world, what, copy_out(got), want, tolerance);
  EXPECT_TRUE(verdict.ok) << verdict.text;
}

void expect_gradients(const Net& net, const std::vector<golden::Layer>& want) {
  for (std::size_t k = 0; k < want.size(); ++k) {
    expect_golden(fmt::format("gradient {}", k), net.gradients[k], golden::flat(want[k]));
  }
}

ONE_RANK_TEST(Mlp, StartsFromTheGoldenWeights) {
  for (const Case& c : cases()) {
    const golden::Model model(c.shape, seed);
    for (std::size_t k = 0; k < c.shape.size(); ++k) {
      const Buffer bucket = random_buffer(1, c.shape[k].parameters(), 50);
      initialise(c.shape[k], bucket, seed, static_cast<int>(k));
      EXPECT_EQ(worst_error(bucket, golden::flat(model.layers()[k])), 0) << c.name;
    }
  }
}

// Parts that begin and end inside rows, hold whole rows, or the bias alone; and none.
ONE_RANK_TEST(Mlp, StartsAnyPartFromTheSameWeights) {
  for (const Case& c : cases()) {
    for (std::size_t k = 0; k < c.shape.size(); ++k) {
      const std::int64_t count = c.shape[k].parameters();
      const Buffer whole = random_buffer(1, count, 50);
      initialise(c.shape[k], whole, seed, static_cast<int>(k));
      for (const int parts : {1, 2, 3, 7, 400}) {
        for (int index = 0; index < parts; ++index) {
          const Part part = part_of(count, parts, index);
          const Buffer mine = random_buffer(1, part.count, 51);
          initialise_part(c.shape[k], mine, part, seed, static_cast<int>(k));
          EXPECT_EQ(hash(mine), hash(whole.tensor().part(part.first, part.count))) << c.name;
        }
      }
    }
  }
}

ONE_RANK_TEST(Mlp, GradientsMatchGolden) {
  for (const Case& c : cases()) {
    for (const std::int64_t rows : {0, 1, 7}) {
      for (const bool own_dy : {false, true}) {
        SCOPED_TRACE(fmt::format("{}, {} rows, own dy {}", c.name, rows, own_dy));
        golden::Model model(c.shape, seed);
        move_biases(model);
        Net net(c.shape, model);
        const std::int64_t in = c.shape.front().in;
        const Buffer x = random_buffer(rows, in, 99, 2), dx = random_buffer(rows, in, 98);
        const auto labels = labels_of(rows, c.shape.back().out);
        golden::Matrix want_dx;
        const auto want = model.gradient(inputs(rows, in), labels, &want_dx);
        const double loss = net.pass(x, labels, dx, own_dy);
        EXPECT_NEAR(loss, model.loss(inputs(rows, in), labels), 1e-5);
        expect_gradients(net, want);
        expect_golden("dx", dx, {want_dx.data(), want_dx.data() + want_dx.size()});
      }
    }
  }
}

ONE_RANK_TEST(Mlp, AccumulatesOverMicroBatchesWithoutDx) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    golden::Model model(c.shape, seed);
    move_biases(model);
    Net net(c.shape, model);
    const std::int64_t in = c.shape.front().in;
    const Buffer x = random_buffer(7, in, 99, 2);
    const auto labels = labels_of(7, c.shape.back().out);
    for (int micro_batch = 0; micro_batch < 2; ++micro_batch) {
      const Part rows = part_of(7, 2, micro_batch);
      const auto first = labels.begin() + rows.first;
      net.pass(x.tensor().part(rows.first * in, rows.count * in).shaped(rows.count, in),
               {first, first + rows.count}, Tensor());
    }
    expect_gradients(net, model.gradient(inputs(7, in), labels));
  }
}

ONE_RANK_TEST(Mlp, SavesActivationsAndNothingElse) {
  MemoryLedger ledger;
  Device device(ledger);
  const Saved linear(device, {6, 4, true, false, false}, 3);
  EXPECT_EQ(ledger.live(Category::activation), 3 * 4 * 4) << "the output is z itself";
  const Saved gelu(device, {6, 4, true, true, false}, 3);
  EXPECT_EQ(ledger.live(), 3 * (3 * 4 * 4));
  const AdamState adam(device, 9);
  EXPECT_EQ(ledger.live(Category::optimizer), 8 * 9);
  EXPECT_EQ(parameter_count(mlp_shape(64, 32, 10, 3)), 64 * 32 + 32 + 32 * 32 + 32 + 320 + 10);
  EXPECT_EQ(parameter_count(mlp_shape(10000, 10000, 10000, 70, false)), 7'000'000'000);
}

ONE_RANK_TEST(Mlp, RefusesShapesThatDoNotMatch) {
  Device& device = test_context().device;
  const LayerShape shape{5, 4, true, true, false}, residual{5, 4, true, true, true};
  const Buffer bucket = random_buffer(1, shape.parameters(), 1), x = random_buffer(3, 6, 2);
  Saved saved(device, shape, 3), saved_residual(device, residual, 3);
  EXPECT_THROW(forward(shape, bucket, x, saved), Failure) << "too many columns";
  EXPECT_THROW(forward(shape, bucket, random_buffer(2, 5, 2), saved), Failure) << "too few rows";
  EXPECT_THROW(forward(shape, bucket.tensor().part(0, 20), random_buffer(3, 5, 2), saved), Failure);
  EXPECT_THROW(forward(residual, bucket, random_buffer(3, 5, 2), saved_residual), Failure);
  AdamState state(device, 4);
  EXPECT_THROW(adam_step(random_buffer(1, 4, 1), random_buffer(1, 4, 1), 0, state, {}), Failure)
      << "a mean over no samples";
}

// Its steps hardly depend on the size of the gradient: the weights do not show a missing division.
ONE_RANK_TEST(Adam, DividesTheSumByTheSamplesOnce) {
  Device& device = test_context().device;
  const Buffer parameters = random_buffer(1, 3, 1), gradient_sum = random_buffer(1, 3, 2);
  copy_in(std::vector<float>{8, -16, 0}, gradient_sum);
  AdamState state(device, 3);
  adam_step(parameters, gradient_sum, 8, state, {1e-3f, 0.5f, 0.75f, 1e-8f});
  EXPECT_EQ(copy_out(state.m), (std::vector<float>{0.5f, -1, 0}));
  EXPECT_EQ(copy_out(state.v), (std::vector<float>{0.25f, 1, 0}));
  EXPECT_EQ(state.step, 1);
}

ONE_RANK_TEST(Adam, FollowsGoldenForTwentySteps) {
  const ModelShape shape = mlp_shape(5, 7, 4, 3, true, true);
  const AdamOptions options{1e-2f, 0.9f, 0.999f, 1e-8f};
  golden::Model model(shape, seed);
  Net net(shape, model);
  std::vector<AdamState> states;
  for (const LayerShape& layer : shape)
    states.emplace_back(test_context().device, layer.parameters());
  const Buffer x = random_buffer(16, 5, 99, 2);
  const auto labels = labels_of(16, 4);
  const double start = model.loss(inputs(16, 5), labels);
  for (int step = 0; step < 20; ++step) {
    for (const Buffer& gradient : net.gradients) zero(gradient);
    EXPECT_NEAR(net.pass(x, labels, Tensor()), model.loss(inputs(16, 5), labels), 1e-4);
    for (std::size_t k = 0; k < shape.size(); ++k) {
      adam_step(net.parameters[k], net.gradients[k], 16, states[k], options);
    }
    model.step(inputs(16, 5), labels, options);
    for (std::size_t k = 0; k < shape.size(); ++k) {
      expect_golden(fmt::format("weights {}", k), net.parameters[k],
                    golden::flat(model.layers()[k]));
    }
  }
  EXPECT_LT(model.loss(inputs(16, 5), labels), 0.9 * start) << "it has to learn something";
}

}  // namespace
}  // namespace fivecuts
