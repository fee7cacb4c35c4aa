// Runs that go wrong on purpose, one for each --fault: how every program of the project ends then.
//   mpirun -n 3 build/common/tests/faults --timeout 2 --fault skipped_collective
// The expected status and sentence stand in CMakeLists.txt beside this file.
#include <csignal>
#include <cstdlib>
#include <map>
#include <thread>

#include "common/compute/operations.hpp"
#include "common/support/main.hpp"

namespace fivecuts {
namespace {

/// What a fault needs: the rank's context and the group it works in.
struct Scene {
  Context& context;
  Communicator& comm;
  int rank, n;
  Buffer f32(std::int64_t count) const { return {context.device, Category::workspace, 1, count}; }
  Buffer i64(std::int64_t count) const {
    return {context.device, Category::workspace, 1, count, DType::i64};
  }
  bool last() const { return rank == n - 1; }
};
using Fault = void (*)(const Scene&);

// --- the ranks' own faults ---

void none(const Scene& s) { s.comm.all_reduce(s.f32(5)); }
void status(const Scene&) {}  // of the last rank only: see main
void out_of_memory(const Scene& s) {
  const Buffer fits(s.context.device, Category::parameter, 1, 100);
  if (s.last()) const Buffer too_large(s.context.device, Category::gradient, 1000, 1000);
  s.comm.all_reduce(fits);
}
void more_than_there_is(const Scene& s) {
  const Buffer fits(s.context.device, Category::parameter, 1, 100);
  if (s.last()) const Buffer too_large(s.context.device, Category::gradient, 1 << 30, 1 << 28);
  s.comm.all_reduce(fits);
}
/// A kernel that follows a bad address: only a GPU's, which fails later than it is told to.
void broken_kernel(const Scene& s) {
  if (s.context.device.kind() != Device::Kind::cuda) throw UsageError("this fault is a GPU's");
  if (s.last()) {
    const Buffer freed = s.f32(8);
    const Tensor nowhere(s.context.device, freed.tensor().data() + (std::int64_t{1} << 40),
                         DType::f32, 1, 8);
    scale(nowhere, 2);
  }
  const Buffer sum = s.f32(5);
  s.comm.all_reduce(sum);
  s.context.device.synchronize();
}
/// No fault: the device is busy for longer than the time limit, and gets on all the time.
void busy(const Scene& s) {
  const Buffer a(s.context.device, Category::workspace, 512, 512),
      b(s.context.device, Category::workspace, 512, 512);
  zero(a);
  for (int i = 0; i < 400; ++i) add_transposed_product(a, a, b);
}
/// Likewise, and the communication lane waits for it, and the caller for that.
void busy_in_async(const Scene& s) {
  const Buffer sum = s.f32(5);
  zero(sum);
  busy(s);
  s.comm.async([&](Communicator& lane) { lane.all_reduce(sum); }).wait();
}
/// Does not come where the others wait for it, and does not end either.
void never_comes(const Scene& s) {
  if (s.last()) std::this_thread::sleep_for(std::chrono::hours(1));
  const Communicator group = s.comm.split("group", [](int) { return 0; });
}
void throws_alone(const Scene& s) {
  const Buffer buffer = s.f32(8);
  Communicator group = s.comm.split("group", [](int) { return 0; });
  if (s.last()) fail("the disk is full");
  group.all_reduce(buffer);
}
void throws_alone_in_async(const Scene& s) {
  const Buffer buffer = s.f32(8);
  Pending pending = s.comm.async([&](Communicator& lane) {
    if (s.last()) fail("the stream ran dry");
    lane.all_reduce(buffer);
  });
  pending.wait();
}
void throws_in_a_message(const Scene& s) {
  const Buffer buffer = s.f32(8);
  const Pending pending = s.comm.ireceive((s.rank + 1) % s.n, buffer);
  if (s.last()) fail("lost its way");
}
void throws_everywhere(const Scene&) { fail("the same everywhere"); }
void throws_no_exception(const Scene& s) {
  if (s.last()) throw 42;
  s.comm.barrier();
}
void refuses_everywhere(const Scene& s) {
  throw UsageError(fmt::format("{} ranks are not possible; try: mpirun -n 99 faults", s.n));
}
void refuses_alone(const Scene& s) {
  if (s.last()) throw UsageError("this rank alone does not like it");
  s.comm.all_reduce(s.f32(5));
}
void killed(const Scene& s) {
  if (s.last()) std::raise(SIGKILL);
  s.comm.all_reduce(s.f32(5));
}
void crashes(const Scene& s) {
  if (s.last()) {
    std::signal(SIGSEGV, SIG_DFL);
    std::raise(SIGSEGV);
  }
  s.comm.all_reduce(s.f32(5));
}
void aborts(const Scene& s) {
  if (s.last()) std::abort();
  const Buffer buffer = s.f32(5);
  s.comm.receive(s.n - 1, buffer);
}
void leaves_the_process(const Scene& s) {
  if (s.last()) std::_Exit(0);
  s.comm.all_reduce(s.f32(5));
}
void exits(const Scene& s) {
  if (s.last()) std::exit(0);
  s.comm.all_reduce(s.f32(5));
}
void peer_out_of_range(const Scene& s) { s.comm.send(s.n, s.f32(5)); }

// --- ranks that disagree about a collective ---

void skipped_collective(const Scene& s) {
  const Buffer a = s.f32(24), b = s.f32(7);
  if (!s.last()) s.comm.all_reduce(a);
  s.comm.broadcast(b, 0);
}
void skipped_collective_in_group(const Scene& s) {
  const Buffer a = s.f32(24), b = s.f32(7);
  Communicator tail = s.comm.split("tail", [](int r) { return r == 0 ? 0 : 1; });
  if (!s.last() || s.n < 3) tail.all_reduce(a);
  tail.broadcast(b, 0);
}
void skipped_collective_in_async(const Scene& s) {
  const Buffer a = s.f32(24), b = s.f32(7);
  Pending pending = s.comm.async([&](Communicator& lane) {
    if (!s.last()) lane.all_reduce(a);
    lane.broadcast(b, 0);
  });
  pending.wait();
}
void other_count(const Scene& s) { s.comm.all_reduce(s.f32(s.last() ? 25 : 24)); }
void other_type(const Scene& s) { s.comm.all_reduce(s.last() ? s.i64(24) : s.f32(24)); }
void other_reduction(const Scene& s) {
  s.comm.all_reduce(s.f32(24), s.last() ? Reduction::max : Reduction::sum);
}
void other_root(const Scene& s) { s.comm.broadcast(s.f32(24), s.last() ? 1 : 0); }
void other_group(const Scene& s) {
  const Communicator group = s.comm.split(s.last() ? "tp" : "dp", [](int) { return 0; });
}
void swapped_collectives(const Scene& s) {
  const Buffer a = s.f32(24), part = s.f32(part_of(24, s.n, s.rank).count);
  if (s.last()) s.comm.reduce_scatter(a, part);
  s.comm.all_reduce(a);
  if (!s.last()) s.comm.reduce_scatter(a, part);
}
void collective_against_message(const Scene& s) {
  const Buffer a = s.f32(24);
  if (s.last()) return s.comm.all_reduce(a);
  if (s.rank == 0) s.comm.receive(s.n - 1, a);
}
void leaves_early(const Scene& s) {
  const Buffer a = s.f32(24);
  for (int step = 0; step < (s.last() ? 2 : 3); ++step) s.comm.all_reduce(a);
}

// --- ranks that disagree about a message ---

void message_count(const Scene& s) {
  if (s.rank == 0) s.comm.send(1, s.f32(5));
  if (s.rank == 1) s.comm.receive(0, s.f32(4));
}
void message_type(const Scene& s) {
  if (s.rank == 0) s.comm.exchange(to(1, s.f32(4)));
  if (s.rank == 1) s.comm.exchange(from(0, s.i64(2)));
}
void never_received(const Scene& s) {
  if (s.last()) s.comm.send(0, s.f32(5));
}
void never_sent(const Scene& s) {
  if (s.last()) s.comm.receive(0, s.f32(5));
}
void never_sent_in_async(const Scene& s) {
  const Buffer a = s.f32(5);
  Pending pending = s.comm.async([&](Communicator& lane) {
    if (s.last()) lane.receive(0, a);
  });
  pending.wait();
}
void both_send_first(const Scene& s, std::int64_t count) {
  const Buffer a = s.f32(count), b = s.f32(count);
  if (s.rank > 1) return;
  s.comm.send(1 - s.rank, a);
  s.comm.receive(1 - s.rank, b);
}
void large_sends_first(const Scene& s) { both_send_first(s, 1 << 20); }
void small_sends_first(const Scene& s) { both_send_first(s, 10); }
void both_receive_first(const Scene& s) {
  const Buffer a = s.f32(10), b = s.f32(10);
  if (s.rank > 1) return;
  s.comm.receive(1 - s.rank, a);
  s.comm.send(1 - s.rank, b);
}

#define FAULT(name) \
  { #name, name }
const std::map<std::string, Fault> faults = {FAULT(none),
                                             FAULT(status),
                                             FAULT(out_of_memory),
                                             FAULT(more_than_there_is),
                                             FAULT(broken_kernel),
                                             FAULT(busy),
                                             FAULT(busy_in_async),
                                             FAULT(never_comes),
                                             FAULT(throws_alone),
                                             FAULT(throws_alone_in_async),
                                             FAULT(throws_in_a_message),
                                             FAULT(throws_everywhere),
                                             FAULT(throws_no_exception),
                                             FAULT(refuses_everywhere),
                                             FAULT(refuses_alone),
                                             FAULT(killed),
                                             FAULT(crashes),
                                             FAULT(aborts),
                                             FAULT(leaves_the_process),
                                             FAULT(exits),
                                             FAULT(peer_out_of_range),
                                             FAULT(skipped_collective),
                                             FAULT(skipped_collective_in_group),
                                             FAULT(skipped_collective_in_async),
                                             FAULT(other_count),
                                             FAULT(other_type),
                                             FAULT(other_reduction),
                                             FAULT(other_root),
                                             FAULT(other_group),
                                             FAULT(swapped_collectives),
                                             FAULT(collective_against_message),
                                             FAULT(leaves_early),
                                             FAULT(message_count),
                                             FAULT(message_type),
                                             FAULT(never_received),
                                             FAULT(never_sent),
                                             FAULT(never_sent_in_async),
                                             FAULT(large_sends_first),
                                             FAULT(small_sends_first),
                                             FAULT(both_receive_first)};

}  // namespace
}  // namespace fivecuts

int main(int argc, char** argv) {
  using namespace fivecuts;
  std::string fault = "none";
  std::int64_t count = 1;
  return run_program(argc, argv,
                     {"faults", "ends in the way that --fault names",
                      [&](CLI::App& app) {
                        app.add_option("--fault", fault, "what goes wrong")
                            ->check(CLI::IsMember(faults))
                            ->type_name("NAME");
                        add_count(app, "--count", count, 1, 1000, "a number, to refuse others");
                      },
                      [&](Context& context) -> int {
                        const int rank = context.rank(), n = context.size();
                        faults.at(fault)({context, context.world, rank, n});
                        context.device.synchronize();
                        if (fault == "status" && rank == n - 1) return exit_failed;
                        context.say("went well\n");
                        return exit_ok;
                      }});
}
