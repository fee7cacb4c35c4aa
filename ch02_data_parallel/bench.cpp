// The training step's speed, as the median over steps:
//
//     ./course bench ch02
//     mpirun -n 2 build/ch02_data_parallel/ch02_data_parallel_bench        (the same by hand)
//
// 4 layers W -> W with GELU, softmax loss, Adam, 64 rows per rank, fp32. `alone` is rank 0 by
// itself while the others wait: what weak scaling is measured against. docs/performance.md has the
// figures.
#include <benchmark/benchmark.h>

#include <chrono>
#include <map>

#include "ch02_data_parallel/bench.hpp"
#include "ch02_data_parallel/beyond/beyond.hpp"
#include "common/support/main.hpp"

using namespace fivecuts;
using namespace fivecuts::data_parallel;

namespace {

constexpr std::int64_t rows_per_rank = 64, layers = 4;

using Step = std::function<void(Replica&, const Shard&, Communicator&)>;

/// What one line of the benchmark trains; every rank of `comm` takes the same number of steps.
class Training {
 public:
  Training(Device& device, std::int64_t width, Communicator comm, const Step& step)
      : replica_(device, ModelShape(layers, LayerShape{width, width, true, true, false}), 1),
        comm_(std::move(comm)),
        step_(step) {
    for (int k = 0; k < 64; ++k)
      batches_.push_back(random_shard(device, rows_per_rank, width, comm_, k));
    for (int k = 0; k < 20; ++k) next();
  }
  void next() { step_(replica_, batches_[at_++ % batches_.size()], comm_); }

 private:
  Replica replica_;
  Communicator comm_;
  Step step_;
  std::vector<Shard> batches_;
  std::size_t at_ = 0;
};

void time_steps(benchmark::State& state, const Communicator& world, Training* training) {
  using Clock = std::chrono::steady_clock;
  world.barrier();
  for (auto _ : state) {
    const auto start = Clock::now();
    if (training != nullptr) training->next();
    state.SetIterationTime(std::chrono::duration<double>(Clock::now() - start).count());
  }
  world.barrier();
}

/// Prints as Google Benchmark does, on rank 0 alone, and keeps the medians.
class Medians : public benchmark::ConsoleReporter {
 public:
  explicit Medians(bool speaks) : speaks_(speaks) {}
  bool ReportContext(const Context& context) override {
    return !speaks_ || ConsoleReporter::ReportContext(context);
  }
  void ReportRuns(const std::vector<Run>& runs) override {
    if (speaks_) ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      if (run.aggregate_name == "median")
        median_ms[run.run_name.function_name + "/" + run.run_name.args] = run.GetAdjustedRealTime();
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
  // Kept over the repetitions of a line, each of which is one step: the median is one over steps.
  std::map<std::string, std::unique_ptr<Training>> trainings;
  std::map<std::string, std::int64_t> widths;
  const auto add = [&](const std::string& name, Communicator comm, bool takes_part,
                       const Step& step) {
    const auto lines = [&, name, comm, takes_part, step](benchmark::State& state) {
      auto& training = trainings[name];
      const std::int64_t width = state.range(0);
      if (takes_part && (!training || widths[name] != width)) {
        training.reset();
        training = std::make_unique<Training>(context.device, width, comm, step);
        widths[name] = width;
      }
      time_steps(state, context.world, training.get());
    };
    benchmark::RegisterBenchmark(name.c_str(), lines)
        ->Arg(512)
        ->Arg(1024)
        ->Iterations(1)
        ->Repetitions(100)
        ->ReportAggregatesOnly()
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
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
    const auto ms = [&](const char* name) {
      return medians.median_ms[fmt::format("{}/{}", name, width)];
    };
    if (ms("alone") <= 0) continue;
    context.say("fivecuts ranks=1 width={} median_ms={:.3f}\n", width, ms("alone"));
    for (const char* name : {"none", "gather_broadcast", "per_tensor", "per_layer", "overlapped"}) {
      if (ms(name) <= 0) continue;
      context.say("fivecuts ranks={} width={} step={} median_ms={:.3f} efficiency={:.2f}\n",
                  dp.size(), width, name, ms(name), ms("alone") / ms(name));
    }
  }
  return exit_ok;
}

}  // namespace

int main(int argc, char** argv) {
  Program program{"ch02_data_parallel_bench", "speed of the training step", nullptr, nullptr};
  program.story = [&](Context& context) { return story(context, argc, argv); };
  program.observed = false;
  return run_program(1, argv, program);
}
