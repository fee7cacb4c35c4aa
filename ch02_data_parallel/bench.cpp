// The training step's speed, as the median over steps:
//
//     ./course bench ch02            (or: mpirun -n 2 build/ch02_data_parallel/ch02_data_parallel_bench)
//
// 4 layers W -> W with GELU, softmax loss, Adam, 64 rows per rank, fp32. `alone` is rank 0 by itself while the
// others wait: what weak scaling is measured against. docs/performance.md has the figures.
#include <benchmark/benchmark.h>

#include <chrono>
#include <map>

#include "ch02_data_parallel/beyond/beyond.hpp"
#include "common/model/random.hpp"
#include "common/support/main.hpp"

using namespace fivecuts;
using namespace fivecuts::data_parallel;

namespace {

constexpr std::int64_t rows_per_rank = 64, layers = 4;

Shard random_shard(Device& device, std::int64_t width, const Communicator& comm) {
  Shard shard{Buffer(device, Category::activation, rows_per_rank, width),
              Buffer(device, Category::activation, 1, rows_per_rank, DType::i64), rows_per_rank * comm.size()};
  fill_uniform(shard.x, 2, 0, 1.0f, comm.rank() * rows_per_rank);
  std::vector<std::int64_t> labels;
  for (std::int64_t r = 0; r < rows_per_rank; ++r) labels.push_back((7 * r + comm.rank()) % width);
  copy_in(labels, shard.labels);
  return shard;
}

using Step = std::function<void(Replica&, const Shard&, Communicator&)>;

/// Every rank of `comm` runs the same number of steps; each is timed from start to end on this rank.
void run(benchmark::State& state, Context& context, Communicator comm, bool takes_part, const Step& step) {
  using Clock = std::chrono::steady_clock;
  const std::int64_t width = state.range(0);
  const ModelShape shape(layers, LayerShape{width, width, true, true, false});
  Replica replica(context.device, shape, 1);
  const Shard shard = random_shard(context.device, width, comm);
  if (takes_part) step(replica, shard, comm);  // warm-up
  context.world.barrier();
  for (auto _ : state) {
    const auto start = Clock::now();
    if (takes_part) step(replica, shard, comm);
    state.SetIterationTime(std::chrono::duration<double>(Clock::now() - start).count());
  }
  context.world.barrier();
}

/// Prints as Google Benchmark does, on rank 0 alone, and keeps the medians.
class Medians : public benchmark::ConsoleReporter {
 public:
  explicit Medians(bool speaks) : speaks_(speaks) {}
  bool ReportContext(const Context& context) override { return !speaks_ || ConsoleReporter::ReportContext(context); }
  void ReportRuns(const std::vector<Run>& runs) override {
    if (speaks_) ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      if (run.aggregate_name == "median") median_ms[run.run_name.function_name + "/" + run.run_name.args] = run.GetAdjustedRealTime();
    }
  }
  std::map<std::string, double> median_ms;

 private:
  bool speaks_;
};

int story(Context& context, int argc, char** argv) {
  Communicator dp = context.world.split("dp", [](int) { return 0; });
  Communicator alone = context.world.split("alone", [](int rank) { return rank; });
  const bool first = context.rank() == 0;
  const auto step_with = [](Rung rung) {
    return [rung](Replica& replica, const Shard& shard, Communicator& comm) {
      training_step(replica, shard, comm, rung, library_all_reduce, {});
    };
  };
  const auto overlapped = [](Replica& replica, const Shard& shard, Communicator& comm) {
    overlapped_step(replica, shard, comm, library_all_reduce, {});
  };
  const auto add = [&](const char* name, Communicator comm, bool takes_part, Step step) {
    benchmark::RegisterBenchmark(name, [&context, comm, takes_part, step = std::move(step)](benchmark::State& state) {
      run(state, context, comm, takes_part, step);
    })->Arg(512)->Arg(1024)->Iterations(1)->Repetitions(60)->ReportAggregatesOnly()->UseManualTime()->Unit(benchmark::kMillisecond);
  };
  add("alone", alone, first, step_with(none));
  if (dp.size() > 1) {
    add("none", dp, true, step_with(none));
    add("gather_broadcast", dp, true, step_with(gather_broadcast));
    add("per_tensor", dp, true, step_with(per_tensor));
    add("per_layer", dp, true, step_with(per_layer));
    add("overlapped", dp, true, overlapped);
  }
  benchmark::Initialize(&argc, argv);
  Medians medians(first);
  benchmark::RunSpecifiedBenchmarks(&medians);
  for (const char* width : {"512", "1024"}) {
    const auto ms = [&](const char* name) { return medians.median_ms[fmt::format("{}/{}", name, width)]; };
    if (ms("alone") <= 0) continue;
    context.say("fivecuts ranks=1 width={} median_ms={:.3f}\n", width, ms("alone"));
    for (const char* name : {"none", "gather_broadcast", "per_tensor", "per_layer", "overlapped"}) {
      if (ms(name) <= 0) continue;
      context.say("fivecuts ranks={} width={} step={} median_ms={:.3f} efficiency={:.2f}\n", dp.size(), width, name, ms(name),
                  ms("alone") / ms(name));
    }
  }
  return exit_ok;
}

}  // namespace

int main(int argc, char** argv) {
  Program program{"ch02_data_parallel_bench", "speed of the training step", nullptr, nullptr};
  program.story = [&](Context& context) { return story(context, argc, argv); };
  program.guard = false;
  return run_program(1, argv, program);
}
