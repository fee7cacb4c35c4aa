// What a stage costs in time, and whether the ledger's memory is the machine's:
//
//     ./course bench ch07
//     mpirun -n 2 build/ch07_zero/ch07_zero_bench --rounds 60                 (the same by hand)
//
// 1. The training step at each stage, at two widths: 4 layers W -> W with GELU, softmax loss, Adam,
//    64 rows a rank, fp32. All stages take turns in each round, and a stage's ratio to stage 0 is
//    the median over the rounds, so that whatever else the machine does hits all of them.
// 2. Real memory at 100 million parameters: how much the process grows while a stage is built and
//    takes two steps, beside the ledger's peak. All of it goes back to the system after each stage.
// docs/performance.md has the figures. Exits with 1 if real memory is more than 10 % off.
#include <unistd.h>

#include <cmath>
#include <fstream>
#ifdef __GLIBC__  // told by any of the headers above
#include <malloc.h>
#endif

#include "ch02_data_parallel/bench.hpp"
#include "ch03_allreduce/bench.hpp"
#include "ch07_zero/zero.hpp"
#include "common/observe/table.hpp"
#include "common/support/main.hpp"
#include "common/support/units.hpp"

using namespace fivecuts;
using namespace fivecuts::zero_redundancy;
using all_reduce::median;

namespace {

struct Options {
  std::int64_t rounds = 40;
  std::int64_t width = 0;
  bool memory = true;
};

constexpr std::int64_t rows = 64, layers = 4;
constexpr int steps_a_turn = 2;

// --- time ---

/// One stage in training; all see the same batches.
struct Contender {
  std::string name;
  double target;  ///< the most that a step may take, in steps of stage 0; 0: there is none
  std::unique_ptr<Trainer> trainer;
  std::vector<double> seconds = {};
  std::size_t at = 0;
};

void time_width(Context& context, Communicator& dp, std::int64_t width, std::int64_t rounds) {
  const ModelShape model(layers, LayerShape{width, width, true, true, false});
  std::vector<Shard> batches;
  for (int k = 0; k < 32; ++k) {
    batches.push_back(data_parallel::random_shard(context.device, rows, width, dp, k));
  }
  std::vector<Contender> all;
  const auto add = [&](const char* name, double target, const Settings& settings) {
    all.push_back(
        {name, target, std::make_unique<Trainer>(context.device, dp, model, 1, settings)});
  };
  add("stage 0", 0, {.stage = 0});
  add("stage 1", 1.05, {.stage = 1});
  add("stage 2", 1.05, {.stage = 2});
  add("stage 3", 1.3, {.stage = 3});
  add("stage 3, no prefetch", 1.3, {.stage = 3, .prefetch = false});
  for (std::int64_t round = -5; round < rounds; ++round) {  // five to get warm
    for (Contender& one : all) {
      const double seconds = all_reduce::time_of(context.world, 1, steps_a_turn, [&] {
        one.trainer->step(std::span(&batches[one.at++ % batches.size()], 1), {});
      });
      context.world.barrier();
      if (round >= 0) one.seconds.push_back(seconds);
    }
  }
  Table table({"step", "ms", "of stage 0", "target"});
  for (const Contender& one : all) {
    std::vector<double> ratios;
    for (std::size_t round = 0; round < one.seconds.size(); ++round) {
      ratios.push_back(one.seconds[round] / all.front().seconds[round]);
    }
    table.row({one.name, fmt::format("{:.2f}", median(one.seconds) * 1e3),
               fmt::format("{:.3f}", median(ratios)),
               one.target > 0 ? fmt::format("{}", one.target) : "-"});
  }
  context.say("Training step, width {}, {} ranks\n{}\n", width, dp.size(), table.text());
}

// --- memory ---

/// Bytes of this process in real memory, after what is free has gone back.
std::int64_t resident_bytes() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  std::int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

struct Grown {
  std::int64_t before = 0, real = 0, ledger = 0;
};

/// On a device of its own, whose memory is gone with it.
Grown grow(Communicator& dp, const Settings& settings) {
  const ModelShape model(16, LayerShape{2500, 2500, false, true, false});  // 100,000,000 parameters
  Grown grown{.before = resident_bytes()};
  MemoryLedger ledger;
  Device device(ledger);
  Trainer trainer(device, dp, model, 1, settings);
  const Shard batch = data_parallel::random_shard(device, 1, 2500, dp, 0);
  for (int k = 0; k < 2; ++k) trainer.step(std::span(&batch, 1), {});
  grown.real = resident_bytes() - grown.before;
  grown.ledger = ledger.peak();
  return grown;
}

bool memory_follows(Context& context, Communicator& dp) {
  Table table({"stage", "before", "grows by", "ledger's peak", "of it"});
  const auto show = [](std::int64_t bytes) { return show_bytes(static_cast<double>(bytes)); };
  bool near = true;
  for (const int stage : {0, 1, 2, 3}) {
    const Grown grown = grow(dp, {.stage = stage});
    const double ratio = static_cast<double>(grown.real) / static_cast<double>(grown.ledger);
    near = near && std::abs(ratio - 1) <= 0.1;
    table.row({std::to_string(stage), show(grown.before), show(grown.real), show(grown.ledger),
               fmt::format("{:.3f}", ratio)});
  }
  context.say("Real memory of rank 0 of {}, 100 M parameters in 16 layers, fp32\n{}\n", dp.size(),
              table.text());
  return context.world.all_true(near);
}

int story(Context& context, const Options& options) {
  Communicator dp = context.world.split("dp", [](int) { return 0; });
  for (const std::int64_t width : {512, 1024}) {
    if (options.width == 0 || options.width == width) {
      time_width(context, dp, width, options.rounds);
    }
  }
  if (!options.memory || !std::ifstream("/proc/self/statm")) return exit_ok;
  if (memory_follows(context, dp)) return exit_ok;
  context.say("real memory is NOT within 10 % of the ledger's on every rank\n");
  return exit_failed;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const auto declare = [&](CLI::App& app) {
    add_count(app, "--rounds", options.rounds, 3, 10'000, "turns of each stage");
    add_count(app, "--width", options.width, 0, 1024, "512 or 1024 only; 0: both");
    app.add_flag("!--no-memory", options.memory, "leave the 100 M parameters out");
  };
  Program program{"ch07_zero_bench", "speed and real memory of ZeRO's stages", declare,
                  [&](Context& context) { return story(context, options); }};
  program.observed = false;
  return run_program(argc, argv, program);
}
