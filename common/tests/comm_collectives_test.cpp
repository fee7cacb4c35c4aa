// Groups, the library's collectives, async() and the control channel.
#include <atomic>
#include <chrono>
#include <thread>

#include "common/tests/comm_fixture.hpp"

namespace fivecuts {
namespace {

class Collectives : public CommTest {};
INSTANTIATE_TEST_SUITE_P(, Collectives, guards_and_types(), guard_and_type);

COMM_TEST(Collectives, AllReduce) {
  for (const std::int64_t count : sizes(n)) {
    const Buffer sum = of_rank(context, type, count, rank),
                 max = of_rank(context, type, count, rank);
    comm.all_reduce(sum);
    comm.all_reduce(max, Reduction::max);
    EXPECT_TRUE(holds(sum, [&](std::int64_t i) { return sum_of_ranks(i); }));
    EXPECT_TRUE(holds_of_rank(max, n - 1));
  }
}

COMM_TEST(Collectives, BroadcastFromEveryRoot) {
  for (const std::int64_t count : sizes(n)) {
    for (int root = 0; root < n; ++root) {
      const Buffer buffer = of_rank(context, type, count, rank);
      comm.broadcast(buffer, root);
      EXPECT_TRUE(holds_of_rank(buffer, root)) << "root " << root;
    }
  }
}

COMM_TEST(Collectives, AllGatherAndReduceScatterOfRaggedParts) {
  for (const std::int64_t count : sizes(n)) {
    const auto [first, mine] = part_of(count, n, rank);
    const Buffer part = filled(context, type, mine,
                               [&, at = first](std::int64_t i) { return value(rank, at + i); });
    const Buffer whole = blank(context, type, count);
    comm.all_gather(part, whole);
    for (int r = 0; r < n; ++r) {
      const auto [at, of_r] = part_of(count, n, r);
      EXPECT_TRUE(holds(whole.tensor().part(at, of_r),
                        [&, start = at](std::int64_t i) { return value(r, start + i); }));
    }
    const Buffer summands = of_rank(context, type, count, rank), shard = blank(context, type, mine);
    comm.reduce_scatter(summands, shard);
    EXPECT_TRUE(holds(shard, [&, at = first](std::int64_t i) { return sum_of_ranks(at + i); }));
    comm.reduce_scatter(summands, shard, Reduction::max);
    EXPECT_TRUE(holds(shard, [&, at = first](std::int64_t i) { return value(n - 1, at + i); }));
  }
}

// A shard is often a view into the bucket that is gathered.
COMM_TEST(Collectives, AllGatherOfAPartThatLiesInItsPlace) {
  for (const std::int64_t count : {n - 1, 1000, 1857}) {
    const auto [first, mine] = part_of(count, n, rank);
    const Buffer whole =
        filled(context, type, count, [&, at = first, end = first + mine](std::int64_t i) {
          return i >= at && i < end ? value(0, i) : -1;
        });
    comm.all_gather(whole.tensor().part(first, mine), whole);
    EXPECT_TRUE(holds_of_rank(whole, 0));
  }
}

COMM_TEST(Collectives, WrongPartsAreRefused) {
  const Buffer whole = blank(context, type, 10 * n), part = blank(context, type, 10);
  const Buffer other = blank(context, type == DType::f32 ? DType::i64 : DType::f32, 10);
  const Tensor inside = whole.tensor().part(10 * rank, 10), beside = whole.tensor().part(0, 10);
  EXPECT_THROW(comm.all_gather(part.tensor().part(0, 9), whole), Failure);
  EXPECT_THROW(comm.all_gather(other, whole), Failure);
  EXPECT_THROW(comm.reduce_scatter(whole, part.tensor().part(0, 9)), Failure);
  EXPECT_THROW(comm.reduce_scatter(whole, other), Failure);
  EXPECT_THROW(comm.reduce_scatter(whole, inside), Failure);
  if (rank > 0) {
    EXPECT_THROW(comm.all_gather(beside, whole), Failure);
  }
}

COMM_TEST(Collectives, AreChargedAsARing) {
  for (const std::int64_t count : {0, 1, n - 1, n + 1, 1857}) {
    const std::int64_t bytes = count * size_of(type);
    const auto [first, mine] = part_of(count, n, rank);
    const Buffer whole = of_rank(context, type, count, rank), part = blank(context, type, mine);
    context.traffic.reset();
    comm.all_reduce(whole);
    comm.all_gather(part, whole);
    comm.reduce_scatter(whole, part);
    comm.broadcast(whole, n - 1);
    const auto over_ranks = [&](const std::string& operation) {
      Traffic total;
      for (const Traffic& one : comm.gather(traffic("world", operation, true))) total += one;
      return total;
    };
    EXPECT_EQ(over_ranks("all_reduce"),
              (Traffic{2 * (n - 1) * bytes, 2 * (n - 1) * bytes, 0, 2 * n * (n - 1)}));
    EXPECT_EQ(over_ranks("all_gather"),
              (Traffic{(n - 1) * bytes, (n - 1) * bytes, 0, n * (n - 1)}));
    EXPECT_EQ(over_ranks("reduce_scatter"),
              (Traffic{(n - 1) * bytes, (n - 1) * bytes, 0, n * (n - 1)}));
    EXPECT_EQ(over_ranks("broadcast"), (Traffic{(n - 1) * bytes, (n - 1) * bytes, 0, n - 1}));
    EXPECT_EQ(context.traffic.measured(), Traffic{});
  }
}

class Groups : public CommTest {};
INSTANTIATE_TEST_SUITE_P(, Groups, guards_and_types(), guard_and_type);

COMM_TEST(Groups, OfOneRank) {
  Communicator alone = comm.split("alone", [](int r) { return r; });
  EXPECT_EQ(alone.size(), 1);
  EXPECT_EQ(alone.rank(), 0);
  EXPECT_EQ(members(alone), digits([&](int r) { return r == rank; }));
  const Buffer part = of_rank(context, type, 9, rank), whole = blank(context, type, 9);
  alone.all_gather(part, whole);
  alone.broadcast(whole, 0);
  EXPECT_TRUE(holds_of_rank(whole, rank));
}

COMM_TEST(Groups, OddAndEvenKeepTheOrderOfTheRanks) {
  Communicator group = comm.split("parity", [](int r) { return r % 2; });
  EXPECT_EQ(group.name(), "parity");
  EXPECT_EQ(group.size(), (n + 1 - rank % 2) / 2);
  EXPECT_EQ(group.rank(), rank / 2);
  EXPECT_EQ(members(group), digits([&](int r) { return r % 2 == rank % 2; }));
  const int size = group.size(), next = (group.rank() + 1) % size;
  const Buffer got = blank(context, type, 1857);
  group.exchange(to((group.rank() + size - 1) % size, of_rank(context, type, 1857, rank)),
                 from(next, got));
  EXPECT_TRUE(holds_of_rank(got, 2 * next + rank % 2));
}

COMM_TEST(Groups, WithinGroups) {
  Communicator outer = comm.split("outer", [](int r) { return r / 3; });
  Communicator inner = outer.split("inner", [](int r) { return r / 2; });
  const int block = rank / 3, pair = rank % 3 / 2;
  EXPECT_EQ(members(outer), digits([&](int r) { return r / 3 == block; }));
  EXPECT_EQ(members(inner), digits([&](int r) { return r / 3 == block && r % 3 / 2 == pair; }));
}

COMM_TEST(Groups, TwoUsedAlternately) {
  Communicator rows = comm.split("rows", [](int r) { return r / 2; });
  Communicator columns = comm.split("columns", [](int r) { return r % 2; });
  for (int k = 0; k < 10; ++k) {
    EXPECT_EQ(members(rows), digits([&](int r) { return r / 2 == rank / 2; }));
    EXPECT_EQ(members(columns), digits([&](int r) { return r % 2 == rank % 2; }));
    EXPECT_EQ(members(comm), digits([](int) { return true; }));
  }
}

COMM_TEST(Groups, ManyInARow) {
  for (int k = 0; k < 30; ++k) {
    Communicator group = comm.split("again", [k](int r) { return (r + k) % 2; });
    EXPECT_EQ(members(group), digits([&](int r) { return (r + k) % 2 == (rank + k) % 2; }));
  }
}

class Async : public CommTest {};
INSTANTIATE_TEST_SUITE_P(, Async, guards_and_types(), guard_and_type);

COMM_TEST(Async, GivesTheSameResult) {
  for (const std::int64_t count : sizes(n)) {
    const Buffer buffer = of_rank(context, type, count, rank);
    comm.async([&](Communicator& lane) { lane.all_reduce(buffer); }).wait();
    EXPECT_TRUE(holds(buffer, [&](std::int64_t i) { return sum_of_ranks(i); }));
  }
}

COMM_TEST(Async, RunsInTheOrderGivenAcrossCommunicators) {
  Communicator group = comm.split("parity", [](int r) { return r % 2; });
  std::vector<int> order;
  const Buffer buffer = blank(context, type, 1000);
  Pending last;
  for (int k = 0; k < 20; ++k) {
    Communicator& over = k % 3 == 0 ? group : comm;
    last = over.async([&, k](Communicator& lane) {
      order.push_back(k);
      lane.broadcast(buffer, 0);
    });
  }
  last.wait();
  for (int k = 0; k < 20; ++k) EXPECT_EQ(order.at(static_cast<std::size_t>(k)), k);
}

COMM_TEST(Async, HandlesWaitOnlyForTheirOwnWork) {
  std::vector<Pending> handles;
  std::vector<Buffer> buffers;
  for (int k = 0; k < 8; ++k) {
    buffers.push_back(of_rank(context, type, 5000, rank));
    handles.push_back(
        comm.async([t = buffers.back().tensor()](Communicator& lane) { lane.all_reduce(t); }));
  }
  for (std::size_t k = handles.size(); k-- > 0;) {
    handles[k].wait();
    EXPECT_TRUE(holds(buffers[k], [&](std::int64_t i) { return sum_of_ranks(i); }));
  }
}

COMM_TEST(Async, WhatItThrowsArrivesAtWait) {
  Pending thrown = comm.async([](Communicator&) { throw std::out_of_range("from the stream"); });
  Pending after = comm.async([](Communicator& lane) { lane.barrier(); });
  std::string what = "nothing";
  try {
    thrown.wait();
  } catch (const std::out_of_range& error) {
    what = error.what();
  }
  EXPECT_EQ(what, "from the stream");
  after.wait();   // the stream goes on
  thrown.wait();  // said once
}

COMM_TEST(Async, KeepsAMovedBufferUntilWait) {
  const std::int64_t before = context.memory.live();
  std::int64_t while_it_runs = 0;
  for (int k = 0; k < 20; ++k) {
    Buffer moved = of_rank(context, type, 1857, rank);
    Pending pending = comm.async([&, buffer = std::move(moved)](Communicator& lane) {
      lane.all_reduce(buffer);
      while_it_runs = context.memory.live();
      EXPECT_TRUE(holds(buffer, [&](std::int64_t i) { return sum_of_ranks(i); }));
    });
    pending.wait();
    EXPECT_EQ(while_it_runs, before + 1857 * size_of(type));
    EXPECT_EQ(context.memory.live(), before) << "what the work held is gone when wait() returns";
  }
}

COMM_TEST(Async, AHandleThatGoesOutOfScopeWaits) {
  std::atomic<bool> ran = false;
  {
    const Pending pending = comm.async([&](Communicator& lane) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      lane.barrier();
      ran = true;
    });
  }
  EXPECT_TRUE(ran);
}

COMM_TEST(Async, RunsBesideMessagesOfTheCaller) {
  const std::int64_t count = 1 << 16;
  const Buffer reduced = of_rank(context, type, count, rank);
  const Buffer behind = of_rank(context, type, count, rank),
               got_behind = blank(context, type, count);
  Pending pending = comm.async([&](Communicator& lane) {
    for (int k = 0; k < 10; ++k) {
      lane.exchange(to(right, behind), from(left, got_behind));
      lane.all_reduce(reduced, k == 0 ? Reduction::sum : Reduction::max);
    }
  });
  for (int k = 0; k < 10; ++k) {
    const Buffer got = blank(context, type, count);
    comm.exchange(to(left, of_rank(context, type, count, rank + k)), from(right, got));
    EXPECT_TRUE(holds_of_rank(got, right + k));
    EXPECT_EQ(comm.gather(rank).back(), n - 1);
  }
  pending.wait();
  EXPECT_TRUE(holds_of_rank(got_behind, left));
  EXPECT_TRUE(holds(reduced, [&](std::int64_t i) { return sum_of_ranks(i); }));
}

COMM_TEST(Async, InsideAsyncIsRefused) {
  Pending outer = comm.async([](Communicator& lane) { lane.async([](Communicator&) {}).wait(); });
  EXPECT_THROW(outer.wait(), Failure);
}

class ControlChannel : public CommTest {};
INSTANTIATE_TEST_SUITE_P(, ControlChannel, guards_and_types(), guard_and_type);

COMM_TEST(ControlChannel, Gathers) {
  struct Row {
    double number;
    int rank;
  };
  const auto rows = comm.gather(Row{0.5 * rank, rank});
  ASSERT_EQ(static_cast<int>(rows.size()), n);
  for (int r = 0; r < n; ++r) {
    EXPECT_EQ(rows[static_cast<std::size_t>(r)].number, 0.5 * r);
    EXPECT_EQ(rows[static_cast<std::size_t>(r)].rank, r);
  }
}

COMM_TEST(ControlChannel, GathersTextsOfAnyLength) {
  const auto text_of = [](int r) {
    return r == 1
               ? std::string()
               : std::string(static_cast<std::size_t>(1 + 20000 * r), static_cast<char>('a' + r));
  };
  const auto texts = comm.gather_text(text_of(rank));
  ASSERT_EQ(static_cast<int>(texts.size()), n);
  for (int r = 0; r < n; ++r) EXPECT_EQ(texts[static_cast<std::size_t>(r)], text_of(r));
}

COMM_TEST(ControlChannel, AllTrueNeedsAll) {
  EXPECT_TRUE(comm.all_true(true));
  for (int r = 0; r < n; ++r) EXPECT_FALSE(comm.all_true(rank != r));
}

COMM_TEST(ControlChannel, ABarrierHoldsUntilAllCame) {
  using clock = std::chrono::steady_clock;
  if (rank == n - 1) std::this_thread::sleep_for(std::chrono::milliseconds(30));
  const auto came = clock::now();  // one machine, one clock
  comm.barrier();
  const auto left_at = clock::now();
  for (const auto& other : comm.gather(came)) EXPECT_LE(other, left_at);
}

}  // namespace
}  // namespace fivecuts
