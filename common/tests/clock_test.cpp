// The clock against calculations by hand.
#include "common/tests/clock_fixture.hpp"

namespace fivecuts {
namespace {

/// One FLOP a second; a message inside a node costs 1 s and a second for each 100 bytes, to another
/// node 5 s and a second for each 10.
Cluster slow_by_hand(std::int64_t ranks_per_node = 8) {
  Cluster c;
  c.name = "by hand";
  c.peak_f32 = c.peak_bf16 = 1;
  c.memory_bandwidth = 1e30;
  c.ranks_per_node = ranks_per_node;
  c.intra_node = {1, 100};
  c.inter_node = {5, 10};
  return c;
}

/// The time of each rank at the end of rank(context). Empty on all but rank 0 of the run, whose
/// threads do it.
std::vector<double> times(int ranks, const CommonOptions& options,
                          const std::function<void(Context&)>& rank) {
  return world_results<double>(ranks, options, [&](Context& context) {
    rank(context);
    return context.clock.now();
  });
}

/// `want` are the times of as many ranks.
void expect_times(const std::vector<double>& want, const CommonOptions& options,
                  const std::function<void(Context&)>& rank) {
  if (!once()) return;
  EXPECT_EQ(times(static_cast<int>(want.size()), options, rank), want);
}

// 1 s of latency, 1 s for 100 bytes; the sender is free when all has left.
RANK_TEST(ClockByHand, AMessage) {
  expect_times({1, 2}, with(slow_by_hand()), [](Context& c) {
    const Buffer b = floats(c, 25);
    if (c.rank() == 0) c.world.send(1, b);
    if (c.rank() == 1) c.world.receive(0, b);
  });
}

RANK_TEST(ClockByHand, TwoMessagesQueueAtOnePort) {
  expect_times({3, 1, 1}, with(slow_by_hand()), [](Context& c) {
    const Buffer b = floats(c, 25);
    if (c.rank() == 0) {
      c.world.receive(1, b);
      c.world.receive(2, b);
    } else {
      c.world.send(0, b);
    }
  });
  expect_times({2, 2, 3}, with(slow_by_hand()),
               [](Context& c) {  // out of one port
                 const Buffer b = floats(c, 25);
                 if (c.rank() == 0) {
                   c.world.exchange(to(1, b), to(2, b));
                 } else {
                   c.world.receive(0, b);
                 }
               });
}

// Ports serve messages in the order in which the program waits for them. The first one here leaves
// at 10 and is there at 12; the one that came at 1 has waited behind it.
RANK_TEST(ClockByHand, TheIncomingPortIsTakenInTheOrderOfWaiting) {
  expect_times({13, 1, 11}, with(slow_by_hand()), [](Context& c) {
    const Buffer early = floats(c, 25), late = floats(c, 25);
    if (c.rank() == 2) compute(c, 10);
    if (c.rank() > 0) return c.world.send(0, early);
    Pending first = c.world.ireceive(1, early), second = c.world.ireceive(2, late);
    second.wait();
    first.wait();
  });
}

RANK_TEST(ClockByHand, AMessageThatIsThereAlreadyCostsNothing) {
  expect_times({50, 1}, with(slow_by_hand()), [](Context& c) {
    const Buffer b = floats(c, 25);
    if (c.rank() == 1) return c.world.send(0, b);
    compute(c, 50);
    c.world.receive(1, b);
  });
}

RANK_TEST(ClockByHand, ToAnotherNode) {
  const auto ring = [](Context& c) {
    const Buffer out = floats(c, 25), in = floats(c, 25);
    c.world.exchange(to((c.rank() + 1) % 4, out), from((c.rank() + 3) % 4, in));
  };
  // Two ranks a node: 0 -> 1 and 2 -> 3 stay inside, 1 -> 2 and 3 -> 0 leave: 5 + 10.
  expect_times({15, 10, 15, 10}, with(slow_by_hand(2)), ring);
  expect_times({2, 2, 2, 2}, with(slow_by_hand(4)), ring);
}

RANK_TEST(ClockByHand,
          NodesAreOfTheWholeWorldInAGroupToo) {  // ranks 0 and 3 are on two nodes of two
  expect_times({15, 15, 15, 15}, with(slow_by_hand(2)), [](Context& c) {
    Communicator ends = c.world.split("ends", [](int r) { return r == 0 || r == 3 ? 0 : 1; });
    const Buffer out = floats(c, 25), in = floats(c, 25);
    ends.exchange(to(1 - ends.rank(), out), from(1 - ends.rank(), in));
    const bool leaves = c.traffic.measured("ends").sent_inter_node == 100;
    EXPECT_EQ(leaves, true);  // 1 and 2 are on two nodes as well
  });
}

RANK_TEST(ClockByHand, AMessageHidesBehindComputing) {
  for (const double work : {5.0, 0.5}) {
    expect_times({std::max(work, 1.0), std::max(work, 2.0)}, with(slow_by_hand()), [&](Context& c) {
      const Buffer b = floats(c, 25);
      Pending message = c.rank() == 0 ? c.world.isend(1, b) : c.world.ireceive(0, b);
      compute(c, work);
      message.wait();
    });
  }
}

RANK_TEST(ClockByHand, AnExchangeBetweenRanksAtDifferentTimes) {
  // Rank 1 comes 3 s late. Its message leaves at 3 and is there at 5; the one it receives was there
  // long before, but its own takes until 4 to leave.
  expect_times({5, 4}, with(slow_by_hand()), [](Context& c) {
    if (c.rank() == 1) compute(c, 3);
    const Buffer out = floats(c, 25), in = floats(c, 25);
    c.world.exchange(to(1 - c.rank(), out), from(1 - c.rank(), in));
  });
}

RANK_TEST(ClockByHand, AsyncBesideComputing) {
  // The work of 3 s on the comm lane starts at 1, when it is given; the caller computes until 5, or
  // waits until 4.
  for (const double work : {4.0, 1.0}) {
    expect_times({1 + std::max(work, 3.0)}, with(slow_by_hand()), [&](Context& c) {
      compute(c, 1);
      Pending beside = c.world.async([&](Communicator&) { compute(c, 3); });
      compute(c, work);
      beside.wait();
    });
  }
}

RANK_TEST(ClockByHand, LibraryCollectivesAreRings) {
  const auto after = [](const std::vector<double>& want,
                        const std::function<void(Context&, Tensor, Tensor)>& collective) {
    expect_times(want, with(slow_by_hand()), [&](Context& c) {
      const Buffer whole = floats(c, 100), part = floats(c, 25);
      if (c.rank() == 2) compute(c, 7);  // all start when the last one comes
      collective(c, whole, part);
    });
  };
  after({19, 19, 19, 19}, [](Context& c, Tensor whole, Tensor) { c.world.all_reduce(whole); });
  after({13, 13, 13, 13},
        [](Context& c, Tensor whole, Tensor part) { c.world.all_gather(part, whole); });
  after({13, 13, 13, 13},
        [](Context& c, Tensor whole, Tensor part) { c.world.reduce_scatter(whole, part); });
  after({14, 14, 14, 14}, [](Context& c, Tensor whole, Tensor) { c.world.broadcast(whole, 1); });
}

RANK_TEST(ClockByHand, ARankAloneAndAMessageToItselfCostNothing) {
  expect_times({0}, with(slow_by_hand()), [](Context& c) {
    const Buffer out = floats(c, 25), in = floats(c, 25);
    c.world.exchange(to(0, out), from(0, in));
    c.world.all_reduce(out);
    c.world.broadcast(out, 0);
  });
}

RANK_TEST(ClockByHand, SpansUnderUnit) {
  expect_times({3, 4}, with(load_cluster("unit")), [](Context& c) {
    const Buffer b = floats(c, 1000);
    for (int k = 0; k < 3; ++k) {
      const auto outer = c.device.span("F");
      const auto inner = c.device.span("not counted");
      compute(c, 100);
    }
    if (c.rank() == 0) c.world.send(1, b);
    if (c.rank() == 1) c.world.receive(0, b);
    if (c.rank() == 1) const auto span = c.device.span("B");
  });
}

ONE_RANK_TEST(ClockByHand, TheRoofline) {
  Cluster c = slow_by_hand();
  c.peak_f32 = 100;
  c.peak_bf16 = 200;
  c.memory_bandwidth = 10;
  c.overhead = 0.5;
  c.product_efficiency = {{1, 0.25}, {5, 0.5}};
  const auto seconds = [&](const Work& work) {
    Clock clock(c);
    clock.compute("work", work);
    return clock.now();
  };
  EXPECT_EQ(seconds({.flops = 200, .bytes = 10}), 2.5);  // computing takes longer
  EXPECT_EQ(seconds({.flops = 200, .bytes = 30}), 3.5);  // memory does
  EXPECT_EQ(seconds({.flops = 200, .bytes = 0, .thinnest = 1}), 8.5);
  EXPECT_EQ(seconds({.flops = 300, .bytes = 0, .thinnest = 3}), 8.5);  // 0.375 of the peak
  EXPECT_EQ(seconds({.flops = 200, .bytes = 0, .thinnest = 5000}), 4.5);
  EXPECT_EQ(seconds({.flops = 200, .bytes = 0, .thinnest = 5000, .half = true}), 2.5);
}

ONE_RANK_TEST(ClockByHand, TheEventsOfALaneNeverOverlap) {
  const auto all = world_results<std::vector<Event>>(2, with(slow_by_hand()), [](Context& c) {
    c.clock.log().record(true);
    const Buffer b = floats(c, 25);
    {
      const auto span = c.device.span("F");  // a message in the middle of it cuts it in two
      compute(c, 1 + c.rank());
      c.world.exchange(to(1 - c.rank(), b), from(1 - c.rank(), floats(c, 25)));
      compute(c, 2);
    }
    return c.clock.log().events();
  });
  using Kind = Event::Kind;
  const Lane lane = Lane::compute;
  const std::vector<Event> want = {{Kind::compute, lane, "F", 0, 1, 0, 0, ""},
                                   {Kind::message, lane, "exchange", 1, 4, 2, 200, "world"},
                                   {Kind::compute, lane, "F", 4, 6, 0, 0, ""}};
  EXPECT_EQ(all[0], want);
  EXPECT_EQ(all[1].size(), 3u);
  EXPECT_EQ(all[1][1].end, 3);  // its message was there at 3, when its own had left
  EXPECT_EQ(all[1][1].waited, 0);
}

}  // namespace
}  // namespace fivecuts
