// One of the chapter's algorithms, timed by the clock of a cluster or by MPI's own watch.
//
//   algorithms --world 16 --device meta --cluster slow --pattern ring     what the clock says
//   smpirun ... algorithms_smpi.so --pattern ring                         what SimGrid says
//
// It prints one line: "ring of 16 ranks, 4 MB: 7.500000e-03 s (clock of slow)". The script
// common/tools/compare_clock.sh holds the two against each other.
#include <algorithm>
#include <cmath>

#include "ch03_allreduce/algorithms.hpp"
#include "ch03_allreduce/numbers.hpp"
#include "common/comm/transport_mpi.hpp"
#include "common/support/main.hpp"
#include "common/support/units.hpp"

namespace fivecuts::all_reduce {
namespace {

struct Options {
  std::string pattern = "ring", size = "4MB";
};

int story(Context& context, const Options& options) {
  const std::int64_t count = parse_bytes(options.size) / size_of(DType::f32);
  Communicator& comm = context.world;
  Workspace work;
  // Nodes as many as ranks of a node, for `hierarchical`; all links are alike here.
  work.ranks_per_node = static_cast<int>(std::sqrt(comm.size()));
  const Buffer x(context.device, Category::gradient, 1, count);
  fill(x, [&](std::int64_t i) { return i % 7 + comm.rank(); });
  const NamedAlgorithm& one = algorithm(options.pattern);
  const bool clock = context.clock.on();
  // Groups are made in the first call: that is no part of the time. On the clock they are free.
  if (!clock) one.run(comm, x.tensor().part(0, 0), Reduction::sum, work);
  comm.barrier();
  const auto now = [&] { return clock ? context.clock.now() : mpi_seconds(); };
  const double start = now();
  one.run(comm, x, Reduction::sum, work);
  const auto all = comm.gather(now() - start);
  bool right = true;
  if (!context.device.dry()) {
    const int n = comm.size();
    for (std::int64_t i = 0; const double number : numbers(x)) {
      right = right && number == static_cast<double>(i++ % 7 * n + n * (n - 1) / 2);
    }
  }
  context.say("{} of {} ranks, {}: {:.6e} s ({})\n", one.name, comm.size(),
              show_bytes(static_cast<double>(count * size_of(DType::f32))),
              *std::max_element(all.begin(), all.end()),
              clock ? "clock of " + context.clock.cluster().name : "MPI_Wtime");
  return comm.all_true(right) ? exit_ok : exit_failed;
}

}  // namespace
}  // namespace fivecuts::all_reduce

int main(int argc, char** argv) {
  using namespace fivecuts;
  all_reduce::Options options;
  std::vector<std::string> names;
  for (const auto& one : all_reduce::all_algorithms()) names.emplace_back(one.name);
  const auto declare = [&](CLI::App& app) {
    app.add_option("--pattern", options.pattern, "the algorithm")
        ->check(CLI::IsMember(names))
        ->type_name("NAME")
        ->capture_default_str();
    app.add_option("--bytes", options.size, "of the tensor")
        ->type_name("SIZE")
        ->capture_default_str();
  };
  return run_program(argc, argv,
                     {"algorithms", "the time of an all-reduce", declare,
                      [&](Context& context) { return all_reduce::story(context, options); }});
}
