// Dry runs: no memory, no arithmetic, and every count there is.
#include <sys/resource.h>

#include "common/model/adam.hpp"
#include "common/model/mlp.hpp"
#include "common/tests/clock_fixture.hpp"

namespace fivecuts {
namespace {

CommonOptions dry(const char* cluster = "h100") {
  return with(load_cluster(cluster), Device::Kind::meta);
}

/// The most memory that this process ever had, in bytes.
double peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

/// 7B exactly: 70 layers of 10,000 x 10,000 without bias.
const LayerShape shape_7b{10'000, 10'000, false, true, false};
constexpr int layers_7b = 70;
constexpr double psi = 7e9;

/// A rank's model state and one training step over `rows` rows; what the chapters do, without their
/// cut.
struct Model {
  Model(Device& device, DType type) {
    for (int k = 0; k < layers_7b; ++k) {
      parameters.emplace_back(device, Category::parameter, 1, shape_7b.parameters(), type);
      gradients.emplace_back(device, Category::gradient, 1, shape_7b.parameters(), type);
      optimizer.emplace_back(device, shape_7b.parameters(), type);
      initialise(shape_7b, parameters.back(), 1, k);
    }
  }
  void step(Device& device, DType type, std::int64_t rows,
            const std::function<void(Tensor)>& reduce) {
    const Buffer x(device, Category::activation, rows, shape_7b.in, type);
    std::vector<Saved> saved;
    Tensor at = x;
    for (int k = 0; k < layers_7b; ++k) {
      saved.emplace_back(device, shape_7b, rows, type);
      forward(shape_7b, parameters[static_cast<std::size_t>(k)], at, saved.back());
      at = saved.back().output();
    }
    Buffer dy(device, Category::activation, rows, shape_7b.out, type);
    for (std::size_t k = layers_7b; k-- > 0;) {
      Buffer dx(device, Category::activation, rows, shape_7b.in, type);
      backward_input(shape_7b, parameters[k], saved[k], dy, dx);
      backward_weight(shape_7b, saved[k], gradients[k]);
      reduce(gradients[k]);
      dy = std::move(dx);
    }
    for (std::size_t k = 0; k < layers_7b; ++k)
      adam_step(parameters[k], gradients[k], rows, optimizer[k], {});
  }
  std::vector<Buffer> parameters, gradients;
  std::vector<AdamState> optimizer;
};

ONE_RANK_TEST(Meta, SevenBillionParametersTakeAStep) {
  const double before = peak_memory();
  run_world(1, dry(), [](Context& c) {
    Model model(c.device, DType::bf16);
    EXPECT_EQ(c.memory.live(Category::parameter), 14'000'000'000);
    EXPECT_EQ(c.memory.live(Category::gradient), 14'000'000'000);
    EXPECT_EQ(c.memory.live(Category::optimizer), 84'000'000'000);
    const std::int64_t rows = 2048;
    model.step(c.device, DType::bf16, rows, [](Tensor) {});
    // Three products of 2 b psi FLOP each; the rest is small.
    const double products = 6 * static_cast<double>(rows) * psi;
    EXPECT_GE(c.device.work().flops(), products);
    EXPECT_LE(c.device.work().flops(), 1.01 * products);
    // The input, z and y of each layer, and at most three gradients of them on the way back.
    const std::int64_t one = rows * 10'000 * 2;
    EXPECT_EQ(c.memory.peak(Category::activation), one * (1 + 2 * layers_7b + 2));
    EXPECT_GT(c.clock.now(), products / c.clock.cluster().peak_bf16);
  });
  EXPECT_LT(peak_memory() - before, 100e6);
}

ONE_RANK_TEST(Meta, SixtyFourRanksOfSevenBillion) {
  const int ranks = sanitized ? 8 : 64;
  const auto sent = world_results<std::int64_t>(ranks, dry(), [](Context& c) {
    Model model(c.device, DType::bf16);
    model.step(c.device, DType::bf16, 512, [&](Tensor gradient) { c.world.all_reduce(gradient); });
    return c.traffic.modelled().sent;
  });
  for (const std::int64_t bytes : sent) {
    EXPECT_NEAR(static_cast<double>(bytes), 2 * (1 - 1.0 / ranks) * 2 * psi, 2.0 * 70 * 2 * ranks);
  }
}

ONE_RANK_TEST(Meta, ARingOfAThousandRanks) {
  const int n = sanitized ? 32 : 1024;
  const std::int64_t count = 1'000'000'000;
  const auto times = world_results<double>(n, dry("slow"), [&](Context& c) {
    const Buffer data(c.device, Category::gradient, 1, count, DType::f32);
    const int r = c.rank(), right = (r + 1) % n, left = (r + n - 1) % n;
    const auto chunk = [&](int k) {
      const Part part = part_of(count, n, (k % n + n) % n);
      return data.tensor().part(part.first, part.count);
    };
    const Buffer incoming(c.device, Category::workspace, 1, part_of(count, n, 0).count);
    for (int step = 1; step < n; ++step) {
      const Tensor into = incoming.tensor().part(0, chunk(r - step).count());
      c.world.exchange(to(right, chunk(r - step + 1)), from(left, into));
      add(chunk(r - step), into);
    }
    EXPECT_EQ(c.traffic.measured().messages, n - 1);
    EXPECT_EQ(c.traffic.measured().sent, 4 * (count - chunk(r + 1).count()));
    return c.clock.now();
  });
  const Link link = load_cluster("slow").inter_node;
  const double wire = (n - 1) * (link.latency + 4.0 * count / n / link.bandwidth);
  for (const double time : times) {
    EXPECT_GE(time, 0.999 * wire);
    EXPECT_LE(time, 1.1 * wire);
  }
}

ONE_RANK_TEST(Meta, ACapIsKeptDry) {
  CommonOptions options = dry();
  options.memory_cap = 80'000'000'000;
  const std::string said = message_of<OutOfMemory>(
      [&] { run_world(2, options, [](Context& c) { Model(c.device, DType::bf16); }); });
  EXPECT_TRUE(has(said, "for parameter is 200 MB more than fits")) << said;
  EXPECT_TRUE(has(said, "under --memory 80 GB (in use: parameter")) << said;
}

ONE_RANK_TEST(Meta, ThereAreNoNumbersToLookAt) {
  run_world(1, dry(), [](Context& c) {
    const Buffer b(c.device, Category::workspace, 2, 3), loss(c.device, Category::workspace, 1, 2);
    const Buffer labels(c.device, Category::workspace, 1, 2, DType::i64);
    copy_in(std::vector<float>(6), b);
    copy_in(std::vector<std::int64_t>(2), labels);
    softmax_cross_entropy(b, labels, loss);
    EXPECT_TRUE(std::isnan(sum(loss)));
    for (const auto& look : std::vector<std::function<void()>>{
             [&] { copy_out(b); }, [&] { hash(b); }, [&] { count_equal_argmax(b, labels); },
             [&] { b.tensor().as<float>(); }}) {
      EXPECT_EQ(message_of<Failure>(look).substr(0, 46),
                "a dry tensor has no numbers to look at; --devi");
    }
    EXPECT_THROW(copy_in(std::vector<float>(5), b), Failure);  // shapes are checked all the same
    EXPECT_THROW(multiply(b, b, b), Failure);
    EXPECT_THROW(b.tensor().part(0, 7), Failure);
  });
}

ONE_RANK_TEST(Meta, AddressesTellTensorsApart) {
  run_world(1, dry(), [](Context& c) {
    const Buffer a(c.device, Category::workspace, 1'000'000, 1'000'000),
        b(c.device, Category::workspace, 1, 1);
    EXPECT_NE(a.tensor().data(), b.tensor().data());
    EXPECT_GE(b.tensor().data() - a.tensor().data(), 4'000'000'000'000);
    EXPECT_EQ(a.tensor().part(10, 5).data() - a.tensor().data(), 40);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b.tensor().data()) % 256, 0u);
  });
}

}  // namespace
}  // namespace fivecuts
