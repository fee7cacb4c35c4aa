// How long a pattern of messages takes: by the clock of a cluster, or by MPI's own watch.
//
//   patterns --world 16 --device meta --cluster h100 --pattern ring     what the clock says
//   mpirun -n 4 patterns --no-guard --pattern ring                      what the clock says, of
//   real messages smpirun ... patterns_smpi --pattern ring                            what SimGrid
//   says (docs/clock.md)
//
// It prints one line: "ring of 16 ranks, 4 MB: 7.500000e-03 s (clock of slow)".
//
//   ping-pong   rank 0 and rank 1 send a message forth and back
//   in-cast     all ranks send to rank 0 at once
//   ring        the exchanges of a ring all-reduce: 2 (N-1) steps with a chunk of 1/N
//   all-to-all  everyone sends to everyone, beginning with the next rank: no two aim at one rank at
//   a time pile-up     the same, but everyone begins with rank 0
#include <algorithm>

#include "common/comm/transport_mpi.hpp"
#include "common/support/main.hpp"
#include "common/support/units.hpp"

namespace fivecuts {
namespace {

struct Options {
  std::string pattern = "ring", size = "4MB";
  std::int64_t repetitions = 1;
  std::int64_t count = 0;  ///< numbers of a message
};

Buffer numbers(Context& context, std::int64_t count) {
  return {context.device, Category::workspace, 1, count};
}

void ping_pong(Context& context, const Options& options) {
  const int rank = context.rank();
  if (rank > 1) return;
  const Buffer message = numbers(context, options.count);
  for (std::int64_t k = 0; k < options.repetitions; ++k) {
    if (rank == 0) context.world.send(1, message);
    context.world.receive(1 - rank, message);
    if (rank == 1) context.world.send(0, message);
  }
}

void in_cast(Context& context, const Options& options) {
  const int n = context.size();
  if (context.rank() > 0) {
    const Buffer message = numbers(context, options.count);
    for (std::int64_t k = 0; k < options.repetitions; ++k) context.world.send(0, message);
    return;
  }
  const Buffer messages = numbers(context, (n - 1) * options.count);
  std::vector<Transfer> receives;
  for (int r = 1; r < n; ++r) {
    const Tensor place = messages.tensor().part((r - 1) * options.count, options.count);
    receives.push_back(from(r, place));
  }
  for (std::int64_t k = 0; k < options.repetitions; ++k) context.world.exchange_all(receives);
}

void ring(Context& context, const Options& options) {
  const int n = context.size(), rank = context.rank();
  const auto chunk = [&](int of) { return part_of(options.count, n, (of + n) % n).count; };
  // What is in the chunks does not matter here, so that two places are enough.
  const Buffer out = numbers(context, chunk(0)), in = numbers(context, chunk(0));
  for (std::int64_t k = 0; k < options.repetitions * 2 * (n - 1); ++k) {
    const int step = static_cast<int>(k % n);
    context.world.exchange(to((rank + 1) % n, out.tensor().part(0, chunk(rank - step))),
                           from((rank + n - 1) % n, in.tensor().part(0, chunk(rank - 1 - step))));
  }
}

/// One exchange. `in_turn`: it begins with the next rank, and takes from the one before; else with
/// rank 0.
void all_to_all(Context& context, const Options& options, bool in_turn) {
  const int n = context.size(), rank = context.rank();
  const Buffer out = numbers(context, options.count), in = numbers(context, n * options.count);
  std::vector<Transfer> transfers;
  for (int k = 1; k <= n; ++k) {
    const int receiver = in_turn ? (rank + k) % n : k - 1;
    const int sender = in_turn ? (rank + n - k) % n : k - 1;
    if (receiver != rank) transfers.push_back(to(receiver, out));
    const Tensor place = in.tensor().part(sender * options.count, options.count);
    if (sender != rank) transfers.push_back(from(sender, place));
  }
  for (std::int64_t k = 0; k < options.repetitions; ++k) context.world.exchange_all(transfers);
}

using Pattern = std::function<void(Context&, const Options&)>;
const std::map<std::string, Pattern> patterns = {
    {"ping-pong", ping_pong},
    {"in-cast", in_cast},
    {"ring", ring},
    {"all-to-all", [](Context& c, const Options& o) { all_to_all(c, o, true); }},
    {"pile-up", [](Context& c, const Options& o) { all_to_all(c, o, false); }}};

/// Throws UsageError for what cannot be run.
void check(const Context& context, Options& options) {
  options.count = parse_bytes(options.size) / size_of(DType::f32);
  if (context.size() >= 2 && options.count > 0) return;
  throw UsageError(
      fmt::format("{} ranks and a message of {} give no pattern; it takes two and 4 "
                  "bytes, as in: patterns --world 2 --device meta --bytes 4MB",
                  context.size(), options.size));
}

int story(Context& context, Options options) {
  check(context, options);
  context.world.barrier();
  const bool clock = context.clock.on();
  const auto now = [&] { return clock ? context.clock.now() : mpi_seconds(); };
  const double start = now();
  patterns.at(options.pattern)(context, options);
  const auto all = context.world.gather(now() - start);
  context.say("{} of {} ranks, {}: {:.6e} s ({})\n", options.pattern, context.size(),
              show_bytes(static_cast<double>(options.count * size_of(DType::f32))),
              *std::max_element(all.begin(), all.end()) / static_cast<double>(options.repetitions),
              clock ? "clock of " + context.clock.cluster().name : "MPI_Wtime");
  return exit_ok;
}

}  // namespace
}  // namespace fivecuts

int main(int argc, char** argv) {
  using namespace fivecuts;
  Options options;
  const auto declare = [&](CLI::App& app) {
    app.add_option("--pattern", options.pattern, "ping-pong, in-cast, ring, all-to-all or pile-up")
        ->check(CLI::IsMember(patterns))
        ->type_name("NAME")
        ->capture_default_str();
    app.add_option("--bytes", options.size, "of a message; of the whole tensor for a ring")
        ->type_name("SIZE")
        ->capture_default_str();
    add_count(app, "--repetitions", options.repetitions, 1, 1'000'000,
              "how often; printed is the mean");
  };
  return run_program(argc, argv,
                     {"patterns", "the time of a pattern of messages", declare,
                      [&](Context& context) { return story(context, options); }});
}
