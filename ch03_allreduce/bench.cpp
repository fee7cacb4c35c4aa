// The speed of the all-reduces beside MPI's:
//
//     ./course bench ch03
//     mpirun -n 4 build/ch03_allreduce/ch03_allreduce_bench --rounds 40       (the same by hand)
//
// For each size a line for each algorithm: its median time, how many times as fast it is as
// MPI_Allreduce by default and as the fastest of Open MPI's own algorithms, each forced in turn; the
// bus bandwidth by nccl-tests' factor, 2(N-1)/N of the bytes over the time; and which part that time
// is of what moving the bytes takes at least. All take turns in each round, so that whatever else
// the machine does hits all of them. docs/performance.md has the figures.
#include "ch03_allreduce/bench.hpp"

#include "ch03_allreduce/algorithms.hpp"
#include "common/comm/transport_mpi.hpp"
#include "common/compute/operations.hpp"
#include "common/observe/table.hpp"
#include "common/support/main.hpp"
#include "common/support/units.hpp"

using namespace fivecuts;
using namespace fivecuts::all_reduce;

namespace {

struct Options {
  std::int64_t rounds = 30;
  std::int64_t only = 0;  // bytes
  bool training = true;
};

struct Contender {
  std::string name;
  std::function<void()> run;
  bool mpi = false;
  std::vector<double> seconds = {};
};

/// A communicator for each way in which Open MPI can be told to do it; the first is its own choice.
std::vector<Communicator> mpi_ways(const Communicator& world) {
  static constexpr const char* names[] = {"default", "linear",         "nonoverlapping", "doubling",
                                          "ring",    "segmented ring", "rabenseifner"};
  std::vector<Communicator> ways;
  for (int algorithm = 0; algorithm <= 6; ++algorithm) {
    if (!force_mpi_all_reduce(algorithm) && algorithm > 0) continue;
    ways.push_back(world.split(fmt::format("MPI, {}", names[algorithm]), [](int) { return 0; }));
  }
  force_mpi_all_reduce(0);
  return ways;
}

void print(const Context& context, std::int64_t bytes, std::vector<Contender>& all,
           double least_seconds) {
  const double by_default = median(all.front().seconds);
  double best = by_default;
  for (const Contender& one : all) {
    if (one.mpi) best = std::min(best, median(one.seconds));
  }
  const double n = context.size();
  Table table({"algorithm", "us", "x default", "x best MPI", "bus GB/s", "of the limit"});
  for (const Contender& one : all) {
    const double seconds = median(one.seconds);
    table.row({one.name, fmt::format("{:.2f}", seconds * 1e6),
               fmt::format("{:.2f}", by_default / seconds), fmt::format("{:.2f}", best / seconds),
               fmt::format("{:.2f}", 2 * (n - 1) / n * static_cast<double>(bytes) / seconds / 1e9),
               fmt::format("{:.2f}", least_seconds / seconds)});
  }
  context.say("{} on {} ranks; the limit is {:.2f} us\n{}\n",
              show_bytes(static_cast<double>(bytes)), context.size(), least_seconds * 1e6,
              table.text());
}

/// Calls before those that are timed. MPI's algorithms share their work memory, ours have each its
/// own: without these the one that comes first finds its memory out of the cache, and pays for it.
constexpr int warm = 5;

/// The bytes that an all-reduce must read and write where all lies in one memory, 2 N D, at the
/// speed at which all ranks together do a += b, which moves 3 N D.
constexpr double of_an_addition = 2.0 / 3.0;

void compare(Context& context, std::vector<Communicator>& mpi, std::int64_t bytes, int rounds) {
  Communicator& world = context.world;
  const std::int64_t count = bytes / size_of(DType::f32);
  const Buffer x(context.device, Category::gradient, 1, count),
      y(context.device, Category::workspace, 1, count);
  SharedBuffer memory(world, Category::gradient, 1, count);
  for (const Tensor t : {x.tensor(), y.tensor(), memory.tensor()}) zero(t);
  std::vector<Contender> all;
  for (Communicator& way : mpi) {
    all.push_back({way.name(), [&] { way.all_reduce(x); }, true});
  }
  const std::vector<const char*> names = {"ring", "halving_doubling", "tree", "shared"};
  std::vector<Workspace> works(names.size());
  for (std::size_t k = 0; k < names.size(); ++k) {
    all.push_back({names[k], [&, k, run = algorithm(names[k]).run] {
                     run(world, x, Reduction::sum, works[k]);
                   }});
  }
  all.back().name = "shared, copied";
  all.push_back({"shared", [&] { shared_in(memory, memory, Reduction::sum); }});
  std::vector<double> additions;
  // Long enough to be measured, short enough to be over before something else wants the core.
  const int times =
      static_cast<int>(std::clamp<std::int64_t>((std::int64_t{1} << 24) / bytes, 2, 20));
  for (int round = 0; round < rounds; ++round) {
    for (Contender& one : all) one.seconds.push_back(time_of(world, warm, times, one.run));
    additions.push_back(time_of(world, warm, times, [&] { add(x, y); }));
  }
  print(context, bytes, all, of_an_addition * median(additions));
}

int story(Context& context, const Options& options) {
  if (context.size() == 1 || !SharedBuffer::possible(context.world)) {
    context.say("nothing to compare: this takes 2 ranks or more, on one node\n");
    return exit_ok;
  }
  const int rounds = static_cast<int>(options.rounds);
  std::vector<Communicator> mpi = mpi_ways(context.world);
  for (const std::int64_t kilobytes : {4, 64, 1024, 16 * 1024, 64 * 1024}) {
    const std::int64_t bytes = kilobytes * 1024;
    if (options.only == 0 || options.only == bytes) compare(context, mpi, bytes, rounds);
  }
#if __has_include("ch02_data_parallel/data_parallel.hpp")
  if (options.training) time_training(context, rounds);
#endif
  return exit_ok;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const auto declare = [&](CLI::App& app) {
    add_count(app, "--rounds", options.rounds, 3, 10'000, "turns of each algorithm");
    add_count(app, "--bytes", options.only, 0, 1 << 26, "one size only; 0: all");
    app.add_flag("!--no-training", options.training, "leave ch02's training step out");
  };
  Program program{"ch03_allreduce_bench", "speed of the all-reduces", declare,
                  [&](Context& context) { return story(context, options); }};
  program.observed = false;
  allow_forced_mpi_all_reduce();
  return run_program(argc, argv, program);
}
