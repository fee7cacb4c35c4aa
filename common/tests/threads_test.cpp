// The transport whose ranks are threads: messages, and worlds as a whole.
#ifdef __linux__
#include <sys/resource.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "common/tests/threads_fixture.hpp"

namespace fivecuts {
namespace {

// --- messages ---

RANK_TEST(Threads, KnowTheirPlace) {
  world_of(3, [](Rank& my) {
    EXPECT_STREQ(my.transport.name(), "threads");
    EXPECT_EQ(my.n, 3);
    for (int r = 0; r < 3; ++r) EXPECT_EQ(my.transport.node(r), 0);
  });
}

// In a world of 1, and so for a rank and itself, too.
RANK_TEST(Threads, ExchangesGoAroundARing) {
  all_worlds([](Rank& my) {
    sweep(my.n, [&](DType type, std::int64_t count) {
      const Buffer sent = of_rank(my.context, type, count, my.rank),
                   got = blank(my.context, type, count);
      my.start({to(my.left, sent), from(my.right, got)})->wait();
      EXPECT_TRUE(holds_of_rank(got, my.right));
    });
  });
}

// All sends, then all receives, or the other way around: nothing waits before wait().
RANK_TEST(Threads, EverybodySendsToEverybody) {
  for (const bool sends_first : {true, false}) {
    all_worlds([&](Rank& my) {
      sweep(my.n, [&](DType type, std::int64_t count) {
        if (count > 10000) return;  // of each of 64 pairs
        std::vector<Buffer> sent, got;
        std::vector<Transfer> sends, receives;
        for (int r = 0; r < my.n; ++r) {
          sent.push_back(of_rank(my.context, type, count + r, 10 * my.rank + r));
          got.push_back(blank(my.context, type, count + my.rank));
          sends.push_back(to(r, sent.back()));
          receives.push_back(from(r, got.back()));
        }
        if (!sends_first) std::swap(sends, receives);
        const auto first = my.start(sends);
        const auto second = my.start(receives);
        second->wait();
        first->wait();
        for (int r = 0; r < my.n; ++r) EXPECT_TRUE(holds_of_rank(got[at(r)], 10 * r + my.rank));
      });
    });
  }
}

RANK_TEST(Threads, AShortSendIsDoneAtOnceAndALongOneWhenReceived) {
  world_of(2, [](Rank& my) {
    for (const std::int64_t count : {0, 1, 1024, 1025, 300000}) {
      const auto buffer = of_rank(my.context, DType::f32, count, my.rank);
      if (my.rank == 0) {
        const auto sent = my.send(1, buffer);
        EXPECT_EQ(sent->done(), count <= 1024) << count;
        if (count <= 1024) std::ranges::fill(buffer.tensor().as<float>(), -2.0F);
        my.barrier();
        sent->wait();
        EXPECT_TRUE(sent->done());
        my.barrier();
      } else {
        my.barrier();
        my.receive(0, buffer)->wait();
        EXPECT_TRUE(holds_of_rank(buffer, 0));
        my.barrier();
      }
    }
  });
}

RANK_TEST(Threads, AReceiveIsDoneWhenItsMessageHasCome) {
  world_of(2, [](Rank& my) {
    const auto buffer = of_rank(my.context, DType::i64, 1000, my.rank);
    if (my.rank == 0) {
      my.barrier();
      my.send(1, buffer)->wait();
      my.barrier();
    } else {
      const auto receive = my.receive(0, buffer);
      EXPECT_FALSE(receive->done());
      my.barrier();
      my.barrier();
      EXPECT_TRUE(receive->done());
      EXPECT_TRUE(holds_of_rank(buffer, 0));
    }
  });
}

// Short and long ones mixed. They are waited for last first.
RANK_TEST(Threads, ManyBetweenTwoRanksKeepTheirOrder) {
  world_of(3, [](Rank& my) {
    std::vector<Buffer> sent, got;
    std::vector<std::unique_ptr<InFlight>> all;
    for (int k = 0; k < 100; ++k) {
      const std::int64_t count = k % 7 * 400;
      sent.push_back(of_rank(my.context, DType::f32, count, my.rank + k));
      got.push_back(blank(my.context, DType::f32, count));
      all.push_back(my.send(my.right, sent.back()));
      all.push_back(my.receive(my.left, got.back()));
    }
    while (!all.empty()) {
      all.back()->wait();
      all.pop_back();
    }
    for (int k = 0; k < 100; ++k) EXPECT_TRUE(holds_of_rank(got[at(k)], my.left + k)) << k;
  });
}

RANK_TEST(Threads, PlanesNeverMix) {
  using Plane = Transport::Plane;
  world_of(2, [](Rank& my) {
    const int other = 1 - my.rank;
    std::string envelope = "envelope", verdict = "verdict!", got(8, '?'), got_too(8, '?');
    const Buffer sent = of_rank(my.context, DType::i64, 1, my.rank),
                 data = blank(my.context, DType::i64, 1);
    my.transport.start_send(bytes_of(verdict), other, Plane::verdict)->wait();
    my.send(other, sent)->wait();
    my.transport.start_send(bytes_of(envelope), other, Plane::envelope)->wait();
    verdict = envelope = "(other)";  // both have been taken
    const auto into = [](std::string& text) { return std::as_writable_bytes(std::span(text)); };
    my.transport.start_receive(into(got), other, Plane::envelope)->wait();
    my.transport.start_receive(into(got_too), other, Plane::verdict)->wait();
    my.receive(other, data)->wait();
    EXPECT_EQ(got, "envelope");
    EXPECT_EQ(got_too, "verdict!");
    EXPECT_TRUE(holds_of_rank(data, other));
  });
}

// Longer than the limit for data: on the planes of the host it makes no difference.
RANK_TEST(Threads, AHostMessageIsTakenAtOnce) {
  world_of(2, [](Rank& my) {
    std::string text(100000, 'a'), got(100000, '?');
    if (my.rank == 0) {
      my.transport.start_send(bytes_of(text), 1, Transport::Plane::envelope)->wait();
      text.assign(text.size(), 'b');
      my.barrier();
    } else {
      my.barrier();
      my.transport
          .start_receive(std::as_writable_bytes(std::span(got)), 0, Transport::Plane::envelope)
          ->wait();
      EXPECT_EQ(got, text);
    }
  });
}

// As async() does it: one thread of a rank in a ring of one group, the other in one of the other.
RANK_TEST(Threads, TwoThreadsOfARankOnTwoGroups) {
  world_of(4, [](Rank& my) {
    const auto other = my.transport.split(0, "again");
    const auto rings = [&](Transport& on, int salt) {
      for (int k = 0; k < 50; ++k) {
        const std::int64_t count = k % 2 == 0 ? 100 : 3000;
        const Buffer sent = of_rank(my.context, DType::i64, count, my.rank + salt + k),
                     got = blank(my.context, DType::i64, count);
        const Transfer both[] = {to(my.right, sent), from(my.left, got)};
        on.start(both)->wait();
        EXPECT_TRUE(holds_of_rank(got, my.left + salt + k));
      }
    };
    std::thread second([&] { rings(*other, 1000); });
    rings(my.transport, 0);
    second.join();
  });
}

// --- what goes wrong ---

RANK_TEST(Threads, AWithdrawnReceiveGetsNothing) {
  world_of(2, [](Rank& my) {
    for (const std::int64_t count : {10, 100000}) {
      const Buffer withdrawn = blank(my.context, DType::i64, count),
                   buffer = of_rank(my.context, DType::i64, count, my.rank);
      if (my.rank == 1) my.receive(0, withdrawn).reset();
      my.barrier();
      if (my.rank == 0) my.send(1, buffer)->wait();
      if (my.rank == 1) my.receive(0, buffer)->wait();
      EXPECT_TRUE(holds(withdrawn, [](std::int64_t) { return -1; }));
      EXPECT_TRUE(holds_of_rank(buffer, 0));
    }
  });
}

RANK_TEST(Threads, OneOfManyIsWithdrawn) {
  world_of(2, [](Rank& my) {
    std::vector<Buffer> got;
    std::vector<std::unique_ptr<InFlight>> receives;
    for (int k = 0; k < 3; ++k) got.push_back(blank(my.context, DType::i64, 10));
    if (my.rank == 1) {
      for (const Buffer& buffer : got) receives.push_back(my.receive(0, buffer));
      receives[1].reset();
      my.barrier();
      receives[0]->wait();
      receives[2]->wait();
      EXPECT_TRUE(holds_of_rank(got[0], 0));
      EXPECT_TRUE(holds(got[1], [](std::int64_t) { return -1; }));
      EXPECT_TRUE(holds_of_rank(got[2], 1));
    } else {
      my.barrier();
      for (int k = 0; k < 2; ++k) my.send(1, of_rank(my.context, DType::i64, 10, k))->wait();
    }
  });
}

RANK_TEST(Threads, AWithdrawnSendIsNotRead) {
  world_of(2, [](Rank& my) {
    const Buffer buffer = of_rank(my.context, DType::i64, 1000, my.rank);
    if (my.rank == 0) my.send(1, of_rank(my.context, DType::i64, 1000, 7)).reset();
    my.barrier();
    if (my.rank == 0) my.send(1, buffer)->wait();
    if (my.rank == 1) my.receive(0, buffer)->wait();
    EXPECT_TRUE(holds_of_rank(buffer, 0));
  });
}

// Receives that are withdrawn while messages come: each message is had, or is lost with its
// receive, whose memory is gone then; the order stays, and the last one comes.
RANK_TEST(Threads, WithdrawingRacesWithMessages) {
  constexpr std::int64_t last = 2000;
  world_of(2, [&](Rank& my) {
    if (my.rank == 0) {
      for (std::int64_t k = 0; k <= last; ++k) {
        if (k == last) my.barrier();
        my.send(1, filled(my.context, DType::i64, 512, [&](std::int64_t) { return k; }))->wait();
      }
      return;
    }
    std::int64_t before = -1;
    for (int k = 0; k < last; ++k) {
      std::vector<std::int64_t> memory(512, -1);
      const Tensor got(my.context.device, reinterpret_cast<std::byte*>(memory.data()), DType::i64,
                       1, 512);
      const auto receive = my.receive(0, got);
      if (!receive->done()) continue;
      EXPECT_LT(before, memory[0]);
      EXPECT_EQ(memory[0], memory[511]);
      before = memory[0];
    }
    my.barrier();
    const Buffer got = blank(my.context, DType::i64, 512);
    while (element(got, 511) < last) my.receive(0, got)->wait();
    EXPECT_EQ(element(got, 0), last);
  });
}

// The memory may be used again as soon as the handle is gone, also if that was in the middle of the
// copying. Where the first send was withdrawn in time, the second one is received.
RANK_TEST(Threads, WithdrawingWaitsForWhatIsBeingCopied) {
  constexpr std::int64_t count = 1 << 20;
  std::atomic<int> receiving = -1;
  world_of(2, [&](Rank& my) {
    const auto all = [](std::int64_t number) { return [number](std::int64_t) { return number; }; };
    const Buffer first = blank(my.context, DType::f32, count);
    for (int k = 0; k < 10; ++k) {
      const Buffer second = filled(my.context, DType::f32, count, all(100 + k));
      if (my.rank == 0) {
        std::ranges::fill(first.tensor().as<float>(), static_cast<float>(k));
        auto send = my.send(1, first);
        my.barrier();
        while (receiving < k) continue;  // yielding could take longer than the copying
        for (volatile int wait = 0; wait < 5000 * k;) wait = wait + 1;
        send.reset();
        first.tensor().as<float>().back() = -2.0F;
        my.send(1, second)->wait();
      } else {
        my.barrier();
        receiving = k;
        my.receive(0, first)->wait();
        const auto number = static_cast<std::int64_t>(element(first, 0));
        EXPECT_TRUE(number == k || number == 100 + k) << number;
        EXPECT_TRUE(holds(first, all(number)));
        if (number == k) my.receive(0, first)->wait();
      }
    }
  });
}

RANK_TEST(Threads, OtherSizesAreAFaultOfTheReceiver) {
  world_of(2, [](Rank& my) {
    for (const std::int64_t count : {99, 101, 100000}) {
      for (const bool receiver_first : {true, false}) {
        const Buffer sent = of_rank(my.context, DType::f32, count, 0),
                     got = blank(my.context, DType::f32, 100);
        if (my.rank == 0) {
          if (receiver_first) my.barrier();
          const auto send = my.send(1, sent);
          if (!receiver_first) my.barrier();
          send->wait();
        } else {
          if (!receiver_first) my.barrier();
          const auto receive = my.receive(0, got);
          if (receiver_first) my.barrier();
          const auto text = message_of<Failure>([&] { receive->wait(); });
          EXPECT_TRUE(has(text, fmt::format("rank 1 waits for 400 bytes from rank 0, which sent {}",
                                            4 * count)))
              << text;
          EXPECT_TRUE(holds(got, [](std::int64_t) { return -1; }));
        }
      }
    }
  });
}

// --- worlds ---

// The layers above, with their guard, on threads.
RANK_TEST(Threads, CarryACommunicator) {
  world_of(
      4,
      [](Rank& my) {
        Communicator& comm = my.context.world;
        const Buffer sum = of_rank(my.context, DType::i64, 1857, my.rank),
                     got = blank(my.context, DType::i64, 1857);
        const Buffer sent = of_rank(my.context, DType::i64, 1857, my.rank);
        const Communicator pair = comm.split("pair", [](int r) { return r / 2; });
        Pending pending = comm.async([&](Communicator& lane) { lane.all_reduce(sum); });
        comm.exchange(to(my.right, sent), from(my.left, got));
        pending.wait();
        EXPECT_EQ(pair.gather(my.rank), (std::vector{my.rank / 2 * 2, my.rank / 2 * 2 + 1}));
        EXPECT_TRUE(holds_of_rank(got, my.left));
        EXPECT_TRUE(holds(sum, [](std::int64_t i) { return 4 * (value(0, i) - 1) + 10; }));
      },
      true);
}

ONE_RANK_TEST(Threads, ALargeWorld) {
  const int n = sanitized ? 100 : 1024;
  std::atomic<int> wrong = 0;
  MemoryLedger ledger;
  Device device(ledger);
  on_threads(n, [&](std::unique_ptr<Transport> world) {
    const int rank = world->rank(), right = (rank + 1) % n, left = (rank + n - 1) % n;
    const auto lane = world->split(0, "all"), row = world->split(rank / 32, "row");
    for (int round = 0; round < 3; ++round) {
      std::vector<std::int64_t> sent(1000, rank + round), got(1000, -1);
      const auto view = [&](std::vector<std::int64_t>& v) {
        return Tensor(device, reinterpret_cast<std::byte*>(v.data()), DType::i64, 1, 1000);
      };
      const Transfer both[] = {to(right, view(sent)), from(left, view(got))};
      lane->start(both)->wait();
      wrong += got == std::vector<std::int64_t>(1000, left + round) ? 0 : 1;
      world->all_reduce(view(sent), Reduction::max);
      wrong += sent == std::vector<std::int64_t>(1000, n - 1 + round) ? 0 : 1;
      const auto all = world->all_gather_host(std::as_bytes(std::span(&rank, 1)));
      for (int r = 0; r < n; ++r)
        wrong += std::memcmp(all[at(r)].data(), &r, sizeof r) == 0 ? 0 : 1;
    }
    wrong += row->size() == std::min(32, n - rank / 32 * 32) && row->rank() == rank % 32 ? 0 : 1;
  });
  EXPECT_EQ(wrong, 0);
}

ONE_RANK_TEST(Threads, TheLowestRanksExceptionIsThrownWhenAllHaveEnded) {
  std::atomic<int> ended = 0;
  const auto text = message_of<std::runtime_error>([&] {
    on_threads(5, [&](std::unique_ptr<Transport> world) {
      const int rank = world->rank();
      world->all_gather_host({});
      if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ++ended;
      if (rank == 1 || rank == 3) throw std::runtime_error(fmt::format("rank {}", rank));
    });
  });
  EXPECT_EQ(text, "rank 1");
  EXPECT_EQ(ended, 5);
}

RANK_TEST(Threads, AWorldHasARank) {
  EXPECT_THROW(threads_world(0), Failure);
  EXPECT_THROW(on_threads(-1, [](std::unique_ptr<Transport>) {}), Failure);
}

#ifdef __linux__
// No address space is left for the stacks of so many threads.
RANK_TEST(Threads, ARefusedThreadIsSaidAndNoRankRuns) {
  if (test_context().rank() != 0 || sanitized) return;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  std::int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  ASSERT_GT(pages, 0);
  rlimit tight = before;
  tight.rlim_cur = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE) + (std::int64_t{256} << 20));
  std::atomic<int> ran = 0;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
  const auto text =
      message_of<Failure>([&] { on_threads(500, [&](std::unique_ptr<Transport>) { ++ran; }); });
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_TRUE(has(text, "this system gives a process no 500 threads, it refused number ")) << text;
  EXPECT_EQ(ran, 0);
}
#endif

}  // namespace
}  // namespace fivecuts
