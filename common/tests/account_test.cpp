// A run counts the same over mpirun and over threads, on the cpu and dry: bytes, work, time,
// events.
#include "common/tests/clock_fixture.hpp"

namespace fivecuts {
namespace {

/// What is compared of a rank, field by field.
struct Account {
  double clock = 0, flops = 0, bytes = 0;
  std::int64_t operations = 0;
  std::vector<std::int64_t> memory;
  std::map<TrafficLedger::Key, Traffic> traffic;
  std::vector<Event> events;

  std::string text() const {
    std::string t = fmt::format("clock {:a} flops {:a} bytes {:a} operations {}\n", clock, flops,
                                bytes, operations);
    for (const std::int64_t amount : memory) t += fmt::format("memory {}\n", amount);
    for (const auto& [key, row] : traffic) {
      t += fmt::format("{} {} {}: {} {} {} {}\n", key.communicator, key.operation, key.modelled,
                       row.sent, row.received, row.sent_inter_node, row.messages);
    }
    for (const Event& e : events) {
      t += fmt::format("{} {} {} {:a} {:a} {:a} {} {}\n", static_cast<int>(e.kind),
                       static_cast<int>(e.lane), e.name, e.start, e.end, e.waited, e.bytes,
                       e.communicator);
    }
    return t;
  }
};

/// A bit of everything that is counted.
std::string account_of(Context& c) {
  c.clock.log().record(true);
  const int n = c.size(), r = c.rank(), right = (r + 1) % n, left = (r + n - 1) % n;
  Communicator dp = c.world.split("dp", [](int rank) { return rank % 2; });
  const Buffer a = floats(c, 1000 + r), b = floats(c, 1000 + left), whole = floats(c, 999);
  const Buffer part = floats(c, part_of(999, n, r).count);
  for (const Tensor t : {a.tensor(), b.tensor(), whole.tensor(), part.tensor()}) zero(t);
  for (int step = 0; step < 3; ++step) {
    compute(c, 1e6 * (r + 1));
    c.world.exchange(to(right, a), from(left, b));
    Pending reduction = dp.async([&](Communicator& lane) {
      lane.all_reduce(whole);
      const Buffer mine = floats(c, 10), theirs = floats(c, 10);
      zero(mine);
      lane.exchange(to((lane.rank() + 1) % lane.size(), mine),
                    from((lane.rank() + lane.size() - 1) % lane.size(), theirs));
    });
    compute(c, 3e6);
    reduction.wait();
    c.world.reduce_scatter(whole, part);
    c.world.all_gather(part, whole);
    Pending sent = c.world.isend(right, a);
    c.world.receive(left, b);
    sent.wait();
    c.world.broadcast(whole, n - 1);
  }
  Account account{c.clock.now(),
                  c.device.work().flops(),
                  c.device.work().bytes(),
                  c.device.work().operations(),
                  {c.memory.live(), c.memory.peak()},
                  c.traffic.rows(),
                  c.clock.log().events()};
  for (const Category category : all_categories) account.memory.push_back(c.memory.peak(category));
  return account.text();
}

// Threads compute on the cpu, so on a GPU this says too that the device changes no ledger.
RANK_TEST(SameEverywhere, ThreadsCountWhatMpirunCounts) {
  Context& run = test_context();
  for (const char* name : {"laptop", "h100", "slow", "unit"}) {
    for (const Device::Kind kind : {Device::Kind::cpu, Device::Kind::meta}) {
      const CommonOptions options = with(load_cluster(name), kind);
      std::vector<std::string> here;
      {
        const auto context = another_context(options);
        here = context->world.gather_text(account_of(*context));
        context->world.end_of_run();
      }
      if (run.rank() != 0) continue;
      const auto threads = world_results<std::string>(run.size(), options, account_of);
      EXPECT_EQ(here, threads) << name;
      EXPECT_EQ(threads, world_results<std::string>(run.size(), options, account_of))
          << "run after run, " << name;
    }
  }
}

ONE_RANK_TEST(SameEverywhere, ADryRunCountsWhatARealOneCounts) {
  const auto real = world_results<std::string>(4, with(load_cluster("h100")), account_of);
  const auto dry =
      world_results<std::string>(4, with(load_cluster("h100"), Device::Kind::meta), account_of);
  EXPECT_EQ(real, dry);
}

}  // namespace
}  // namespace fivecuts
