// Measures this machine and prints it as a cluster profile: what a rank's core computes and reads,
// and what a message to another core costs. Takes half a minute; nothing else should run.
//
//   mpirun -n 2 build/common/tools/measure_laptop > mine.json
//   build/ch02_data_parallel/ch02_data_parallel --world 4 --cluster mine.json
//
// common/observe/clusters/laptop.json was made so; docs/clock.md says what its numbers mean.
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "common/compute/operations.hpp"
#include "common/support/main.hpp"

namespace fivecuts {
namespace {

using namespace std::string_literals;
using Json = nlohmann::ordered_json;

constexpr std::int64_t width = 1024;
std::int64_t rounds = 300;  // main sets it. The best one counts: others were disturbed

Buffer zeros(Context& context, std::int64_t rows, std::int64_t cols) {
  Buffer buffer(context.device, Category::workspace, rows, cols);
  zero(buffer);
  return buffer;
}

double wall() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
/// Of this process alone: whoever else has its core in between does not count.
double processor_time() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// Seconds of one call of f, of `calls` in a row, by the watch `now`. The first round warms up.
template <class F>
double best_seconds(double (*now)(), int calls, F f) {
  double best = 1e30;
  for (std::int64_t round = 0; round <= rounds; ++round) {
    const double start = now();
    for (int call = 0; call < calls; ++call) f();
    if (round > 0) best = std::min(best, (now() - start) / calls);
  }
  return best;
}

/// (rows, FLOP/s of a product of rows x width by width x width).
std::vector<std::pair<std::int64_t, double>> product_rates(Context& context) {
  std::vector<std::pair<std::int64_t, double>> rates;
  for (std::int64_t rows = 1; rows <= width; rows *= 2) {
    const Buffer a = zeros(context, rows, width), b = zeros(context, width, width);
    const Buffer c = zeros(context, rows, width);
    const int calls = static_cast<int>(std::max<std::int64_t>(1, 128 / rows));
    const double seconds = best_seconds(processor_time, calls, [&] { multiply(a, b, c); });
    rates.emplace_back(rows, 2 * static_cast<double>(rows * width * width) / seconds);
  }
  return rates;
}

double memory_bandwidth(Context& context) {
  const std::int64_t count = 16 << 20;
  const Buffer to = zeros(context, 1, count), from = zeros(context, 1, count);
  const double bytes = 3 * static_cast<double>(to.tensor().bytes());  // as add() counts them
  return bytes / best_seconds(processor_time, 1, [&] { add(to, from); });
}

double operation_overhead(Context& context) {
  const Buffer to = zeros(context, 1, 1), from = zeros(context, 1, 1);
  return best_seconds(processor_time, 20'000, [&] { add(to, from); });
}

/// Half of the time forth and back, on both ranks together.
double one_way(Context& context, std::int64_t count, int calls) {
  const Buffer message = zeros(context, 1, count);
  const int rank = context.rank();
  return best_seconds(wall, calls,
                      [&] {
                        if (rank == 0) context.world.send(1, message);
                        context.world.receive(1 - rank, message);
                        if (rank == 1) context.world.send(0, message);
                      }) /
         2;
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos)
      return line.substr(colon + 2);
  }
  return "a processor that does not say its name";
}

/// To three digits, which is more than the next run repeats.
Json entry(double value, const char* unit, const std::string& source) {
  return {{"value", std::stod(fmt::format("{:.2e}", value))}, {"unit", unit}, {"source", source}};
}

Json profile(const std::vector<std::pair<std::int64_t, double>>& rates, double bandwidth,
             double overhead, const Link& link) {
  const std::string on = fmt::format("measured by measure_laptop on one core of {}", processor());
  double peak = 0;
  for (const auto& [rows, rate] : rates) peak = std::max(peak, rate);
  Json points = Json::array();
  for (const auto& [rows, rate] : rates) {
    points.push_back({rows, std::stod(fmt::format("{:.3g}", rate / peak))});
  }
  const double memory =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  const auto cores = static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
  const std::string product = fmt::format("products of d rows by {0} x {0}, in f32", width);
  Json p;
  p["about"] = fmt::format(
      "a rank is one core of {}; another machine gives its own: measure_laptop", processor());
  p["peak_f32"] = entry(peak, "FLOP/s", on + ": the best of all " + product);
  p["peak_bf16"] = entry(peak, "FLOP/s", "assumed: as in f32, in which this device computes bf16");
  p["memory_bandwidth"] =
      entry(bandwidth, "B/s", on + ": a += b over 64 MiB each, three of them moved");
  p["memory"] = entry(memory / cores, "B",
                      fmt::format("measured: the memory of that machine, by its {} cores", cores));
  p["overhead"] = entry(overhead, "s", on + ": a += b of one number");
  p["ranks_per_node"] = {{"value", 0},
                         {"unit", "ranks"},
                         {"source", "by definition: nodes are those that the ranks really run on"}};
  p["intra_node"]["latency"] = entry(
      link.latency, "s", on + " and another: half a ping-pong of 4 bytes over Open MPI, no guard");
  p["intra_node"]["bandwidth"] =
      entry(link.bandwidth, "B/s", on + " and another: half a ping-pong of 16 MiB, less latency");
  p["inter_node"]["latency"] =
      entry(50e-6, "s", "assumed: TCP over Gigabit Ethernet and one switch");
  p["inter_node"]["bandwidth"] =
      entry(125e6, "B/s", "assumed: Gigabit Ethernet, 1e9 bit/s each way, no header");
  p["product_efficiency"] = {{"source", on + ": " + product + ", as a share of peak_f32"},
                             {"points", points}};
  return p;
}

int story(Context& context) {
  if (context.size() != 2 || context.device.dry() || context.world.transport().name() != "mpi"s) {
    throw UsageError(fmt::format(
        "it measures a message over MPI between two ranks, and has {} over {}{}; try: mpirun -n 2 "
        "measure_laptop",
        context.size(), context.world.transport().name(), context.device.dry() ? ", dry" : ""));
  }
  Link link;
  link.latency = one_way(context, 1, 1000);
  const std::int64_t count = 4 << 20;
  link.bandwidth = static_cast<double>(count * size_of(DType::f32)) /
                   (one_way(context, count, 1) - link.latency);
  if (context.rank() == 0) {  // the other one waits in the next collective
    const Json measured = profile(product_rates(context), memory_bandwidth(context),
                                  operation_overhead(context), link);
    context.say("{}\n", measured.dump(2));
  }
  context.world.barrier();
  return exit_ok;
}

}  // namespace
}  // namespace fivecuts

int main(int argc, char** argv) {
  using namespace fivecuts;
  const auto declare = [](CLI::App& app) {
    add_count(app, "--rounds", rounds, 1, 1'000'000, "how often each thing is tried");
  };
  Program program{"measure_laptop", "prints this machine as a cluster profile; takes two ranks",
                  declare, story};
  program.observed = false;
  return run_program(argc, argv, program);
}
