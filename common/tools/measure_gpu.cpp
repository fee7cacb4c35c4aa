// Measures this run's GPUs through the library's own operations. Nothing else should run on them.
//
//   build/common/tools/measure_gpu                   what memory and arithmetic give on one GPU
//   mpirun -n 4 build/common/tools/measure_gpu       rank 0's GPU, then the all-reduce of all
//
// Below a line that names the columns, each line is a measurement: what, its size, the time of a
// call, and what is moved or computed in a second.
//
//   operation                   size         time           rate
//   adam_f32               134217728     0.917 ms      4098 GB/s
//   multiply_bf16               8192      1.44 ms     763.6 TFLOP/s
//
// (an example of the form, with invented numbers). The bytes and operations are those that the
// device's ledger was told of. docs/gpu_check holds the rates against the chip's limits.
#include <algorithm>
#include <chrono>

#include "common/model/adam.hpp"
#include "common/model/random.hpp"
#include "common/support/main.hpp"
#include "common/support/units.hpp"

namespace fivecuts {
namespace {

struct Options {
  std::int64_t elements = 1 << 27;  ///< of a tensor, for what memory limits: more than any cache
  std::int64_t size = 8192;         ///< rows and columns of the larger products
  std::int64_t rounds = 10;
  std::string message = "256MiB";  ///< the largest that is reduced
  std::int64_t message_bytes = 0;
};

using Call = std::function<void()>;

double wall() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Times calls on the device. `together`: all ranks call, and the slowest counts; else this one.
class Stopwatch {
 public:
  Stopwatch(Context& context, std::int64_t rounds, bool together)
      : context_(context), rounds_(rounds), together_(together) {}

  struct Reading {
    double seconds = 0;  ///< of a call: the median of the rounds
    double bytes = 0, flops = 0;
  };

  Reading operator()(const Call& call) {
    seconds_of(1, call);  // the first one loads the kernel and asks for memory
    const double once = seconds_of(1, call);
    const double wanted = 0.02 / std::max(once, 1e-9);  // long beside the wait at the end
    const int calls = static_cast<int>(std::clamp(wanted, 1.0, 1000.0));
    const double bytes = context_.device.work().bytes(), flops = context_.device.work().flops();
    std::vector<double> seconds;
    for (std::int64_t round = 0; round < rounds_; ++round) {
      seconds.push_back(seconds_of(calls, call) / calls);
    }
    const double all = static_cast<double>(rounds_) * calls;
    const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
    std::nth_element(seconds.begin(), middle, seconds.end());
    return {*middle, (context_.device.work().bytes() - bytes) / all,
            (context_.device.work().flops() - flops) / all};
  }

 private:
  double seconds_of(int calls, const Call& call) {
    if (together_) context_.world.barrier();
    const double start = wall();
    for (int k = 0; k < calls; ++k) call();
    context_.device.synchronize();
    const double mine = wall() - start;
    if (!together_) return mine;
    const auto all = context_.world.gather(mine);
    return *std::max_element(all.begin(), all.end());
  }

  Context& context_;
  std::int64_t rounds_;
  bool together_;
};

void print(const Context& context, const std::string& what, std::int64_t size, double seconds,
           double rate, const char* unit) {
  context.say("{:<28} {:>10} {:>11.4g} ms {:>10.4g} {}\n", what, size, seconds * 1e3, rate, unit);
}

/// Of numbers that are no zeros: on those a chip is faster, since it needs less power.
Buffer random_numbers(Context& context, std::int64_t rows, std::int64_t cols, DType type) {
  static const std::vector<float> some = [] {
    std::vector<float> numbers(1'000'003);  // of a length that puts others in each row
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      numbers[k] = uniform(1, 0, 0, static_cast<std::int64_t>(k));
    }
    return numbers;
  }();
  Buffer buffer(context.device, Category::workspace, rows, cols, type);
  const auto length = static_cast<std::int64_t>(some.size());
  for (std::int64_t at = 0; at < buffer.tensor().count(); at += length) {
    const std::int64_t count = std::min(length, buffer.tensor().count() - at);
    copy_in(std::span(some).first(static_cast<std::size_t>(count)),
            buffer.tensor().part(at, count));
  }
  return buffer;
}

void measure_launches(Context& context, Stopwatch& stopwatch) {
  const Buffer to = random_numbers(context, 1, 1, DType::f32);
  const Buffer from = random_numbers(context, 1, 1, DType::f32);
  const Stopwatch::Reading row = stopwatch([&] { add(to, from); });
  print(context, "launch", 1, row.seconds, 1 / row.seconds, "call/s");
  const Stopwatch::Reading alone = stopwatch([&] {
    add(to, from);
    context.device.synchronize();
  });
  print(context, "launch_and_wait", 1, alone.seconds, 1 / alone.seconds, "call/s");
}

void print_bandwidth(Context& context, Stopwatch& stopwatch, const std::string& what,
                     std::int64_t size, const Call& call) {
  const Stopwatch::Reading row = stopwatch(call);
  print(context, what, size, row.seconds, row.bytes / row.seconds / 1e9, "GB/s");
}

void measure_adam(Context& context, Stopwatch& stopwatch, std::int64_t count, DType type) {
  const Buffer parameters = random_numbers(context, 1, count, type);
  const Buffer gradient = random_numbers(context, 1, count, type);
  AdamState state(context.device, count, type);
  if (type == DType::bf16) state.master = random_numbers(context, 1, count, DType::f32);
  // In bf16 that is two kernels: the update of the weights in f32, and their rounding.
  print_bandwidth(context, stopwatch, std::string("adam_") + name_of(type), count,
                  [&] { adam_step(parameters, gradient, 1, state, {}); });
}

void measure_element_wise(Context& context, Stopwatch& stopwatch, std::int64_t elements,
                          DType type) {
  const std::string suffix = std::string("_") + name_of(type);
  const std::int64_t cols = std::min<std::int64_t>(elements, 4096), rows = elements / cols;
  const Buffer z = random_numbers(context, rows, cols, type);
  const Buffer y = random_numbers(context, rows, cols, type);
  const Buffer bias = random_numbers(context, 1, cols, type);
  const std::int64_t count = rows * cols;
  print_bandwidth(context, stopwatch, "add" + suffix, count, [&] { add(z, y); });
  print_bandwidth(context, stopwatch, "gelu_backward" + suffix, count,
                  [&] { gelu_backward(z, y); });
  print_bandwidth(context, stopwatch, "bias_gelu" + suffix, count, [&] { bias_gelu(z, bias, y); });
}

void measure_products(Context& context, Stopwatch& stopwatch, std::int64_t size, DType type) {
  const Buffer a = random_numbers(context, size, size, type);
  const Buffer b = random_numbers(context, size, size, type);
  const Buffer c = random_numbers(context, size, size, type);
  const auto measure = [&](const std::string& what, void (*product)(Tensor, Tensor, Tensor)) {
    const Stopwatch::Reading row = stopwatch([&] { product(a, b, c); });
    print(context, what + "_" + name_of(type), size, row.seconds, row.flops / row.seconds / 1e12,
          "TFLOP/s");
  };
  measure("multiply", multiply);
  measure("multiply_transposed", multiply_transposed);
  measure("add_transposed_product", add_transposed_product);
}

void measure_gpu(Context& context, const Options& o) {
  Stopwatch stopwatch(context, o.rounds, false);
  measure_launches(context, stopwatch);
  for (const DType type : {DType::f32, DType::bf16}) {
    measure_element_wise(context, stopwatch, o.elements, type);
    measure_adam(context, stopwatch, o.elements, type);
  }
  for (const DType type : {DType::f32, DType::bf16}) {
    measure_products(context, stopwatch, o.size / 2, type);
    measure_products(context, stopwatch, o.size, type);
  }
}

/// Collective. Bus bandwidth, as nccl-tests define it: what a ring sends from each rank in a
/// second, 2(n-1)/n of the message, however the library really does it.
void measure_all_reduce(Context& context, const Options& o) {
  Stopwatch stopwatch(context, o.rounds, true);
  const double n = context.size();
  const std::int64_t most = std::max<std::int64_t>(1, o.message_bytes / size_of(DType::f32));
  std::vector<std::int64_t> counts;
  for (std::int64_t count = most; count > 0 && counts.size() < 5; count /= 16) {
    counts.insert(counts.begin(), count);
  }
  for (const std::int64_t count : counts) {
    const Buffer message(context.device, Category::workspace, 1, count);
    zero(message);  // any other sum would outgrow f32
    const double seconds = stopwatch([&] { context.world.all_reduce(message); }).seconds;
    const double sent = 2 * (n - 1) / n * static_cast<double>(message.tensor().bytes());
    print(context, "all_reduce_f32", count, seconds, sent / seconds / 1e9, "GB/s");
  }
}

int story(Context& context, Options o) {
  if (context.device.kind() != Device::Kind::cuda) {
    throw UsageError(fmt::format(
        "it measures GPUs, and this run is on {}; where there is a GPU, try: measure_gpu --device "
        "cuda",
        name_of(context.device.kind())));
  }
  o.message_bytes = parse_bytes(o.message);
  context.say("{:<28} {:>10} {:>14} {:>15}\n", "operation", "size", "time", "rate");
  if (context.rank() == 0) measure_gpu(context, o);
  context.world.barrier();  // the others have waited here
  if (context.size() > 1) measure_all_reduce(context, o);
  return exit_ok;
}

}  // namespace
}  // namespace fivecuts

int main(int argc, char** argv) {
  using namespace fivecuts;
  Options o;
  const auto declare = [&](CLI::App& app) {
    add_count(app, "--elements", o.elements, 1, std::int64_t{1} << 33,
              "of a tensor, where memory is the limit");
    add_count(app, "--size", o.size, 2, 1 << 16,
              "rows and columns in a product; half as many are measured too");
    add_count(app, "--rounds", o.rounds, 1, 10'000, "how often each is timed; the median counts");
    app.add_option("--message", o.message, "the largest that several ranks reduce")
        ->type_name("SIZE")
        ->capture_default_str();
  };
  Program program{"measure_gpu", "what this run's GPUs give through the library's operations",
                  declare, [&](Context& context) { return story(context, o); }};
  program.observed = false;
  return run_program(argc, argv, program);
}
