// The transport whose ranks are threads: groups and collectives.
#include <atomic>
#include <cstring>

#include "common/comm/world.hpp"
#include "common/tests/threads_fixture.hpp"

namespace fivecuts {
namespace {

// --- groups ---

RANK_TEST(ThreadsGroups, SplitsAreRaggedAndNested) {
  all_worlds([](Rank& my) {
    const auto split = [](Transport& whole, int parts) {  // rank r goes to group r % parts
      const int r = whole.rank();
      auto group = whole.split(r % parts, "part");
      EXPECT_EQ(group->rank(), r / parts);
      EXPECT_EQ(group->size(), (whole.size() - r % parts + parts - 1) / parts);
      return group;
    };
    const auto outer = split(my.transport, 3);
    const auto again = split(my.transport, 3);  // the same ranks, but not the same group
    const auto inner = split(*outer, 2);
    std::string expected, all;
    for (int r = my.rank % 3; r < my.n; r += 3) {
      if (r / 3 % 2 == my.rank / 3 % 2) expected += std::to_string(r);
    }
    for (const auto& one : inner->all_gather_host(bytes_of(std::to_string(my.rank)))) {
      all += text_of(one);
    }
    EXPECT_EQ(all, expected);
    // A message in one group is none in the other.
    const Buffer sent = of_rank(my.context, DType::f32, 2000, 1),
                 got = blank(my.context, DType::f32, 2000);
    const Buffer sent_again = of_rank(my.context, DType::f32, 2000, 2),
                 got_again = blank(my.context, DType::f32, 2000);
    const int right = (outer->rank() + 1) % outer->size();
    const int left = (outer->rank() + outer->size() - 1) % outer->size();
    const Transfer first[] = {to(right, sent), from(left, got)};
    const Transfer second[] = {from(left, got_again), to(right, sent_again)};
    const auto in_first = outer->start(first);
    again->start(second)->wait();
    in_first->wait();
    EXPECT_TRUE(holds_of_rank(got, 1));
    EXPECT_TRUE(holds_of_rank(got_again, 2));
  });
}

ONE_RANK_TEST(ThreadsGroups, AGroupOutlivesTheWorld) {
  std::unique_ptr<Transport> alone;
  on_threads(2, [&](std::unique_ptr<Transport> world) {
    auto group = world->split(world->rank(), "alone");
    world.reset();
    if (group->all_gather_host({}).size() != 1) return;
    static std::atomic<int> taken;
    if (taken.fetch_add(1) == 0) alone = std::move(group);
  });
  ASSERT_NE(alone, nullptr);
  EXPECT_EQ(alone->all_gather_host(bytes_of("x")).size(), 1U);
}

RANK_TEST(ThreadsGroups, AllGatherHostOfOtherLengths) {
  all_worlds([](Rank& my) {
    for (int round = 0; round < 20; ++round) {
      const auto text = [&](int r) {
        return std::string(at((r + round) % 4 * 100), char('a' + r));
      };
      const auto all = my.transport.all_gather_host(bytes_of(text(my.rank)));
      EXPECT_EQ(all.size(), at(my.n));
      for (std::size_t r = 0; r < all.size(); ++r)
        EXPECT_EQ(text_of(all[r]), text(static_cast<int>(r)));
    }
  });
}

// --- collectives on data ---

RANK_TEST(ThreadsGroups, AllReduce) {
  all_worlds([](Rank& my) {
    sweep(my.n, [&](DType type, std::int64_t count) {
      const Buffer sum = of_rank(my.context, type, count, my.rank),
                   max = of_rank(my.context, type, count, my.rank);
      my.transport.all_reduce(sum, Reduction::sum);
      my.transport.all_reduce(max, Reduction::max);
      EXPECT_TRUE(holds(
          sum, [&](std::int64_t i) { return my.n * (value(0, i) - 1) + my.n * (my.n + 1) / 2; }));
      EXPECT_TRUE(holds_of_rank(max, my.n - 1));
    });
  });
}

// Where sums are rounded: the same bits everywhere, those of the sum in the order of the ranks.
RANK_TEST(ThreadsGroups, SumsHaveTheSameBitsOnAllRanks) {
  all_worlds([](Rank& my) {
    const auto summand = [](int r, std::int64_t i) {
      return 1.0F / static_cast<float>(3 + (i * 37 + r * 1013) % 997);
    };
    const Buffer sum = blank(my.context, DType::f32, 1857);
    for (std::int64_t i = 0; i < 1857; ++i) sum.tensor().as<float>()[at(i)] = summand(my.rank, i);
    my.transport.all_reduce(sum, Reduction::sum);
    for (std::int64_t i = 0; i < 1857; ++i) {
      float expected = summand(0, i);
      for (int r = 1; r < my.n; ++r) expected += summand(r, i);
      const float got = sum.tensor().as<float>()[at(i)];
      EXPECT_EQ(std::memcmp(&got, &expected, sizeof got), 0) << i;
    }
  });
}

// 256 + 1 is 256 in bf16. Rounded at each rank, the ones would get lost.
RANK_TEST(ThreadsGroups, SumsOfBf16AreRoundedOnce) {
  for (const int n : {3, 5, 7}) {
    world_of(n, [](Rank& my) {
      const auto first_is_large = [&](std::int64_t) { return my.rank == 0 ? 256 : 1; };
      for (const std::int64_t count : {1, 1023, 1025, 3000}) {
        const Buffer sum = filled(my.context, DType::bf16, count, first_is_large);
        my.transport.all_reduce(sum, Reduction::sum);
        EXPECT_TRUE(holds(sum, [&](std::int64_t) { return 256 + my.n - 1; }));
      }
    });
  }
}

RANK_TEST(ThreadsGroups, BroadcastFromEveryRoot) {
  all_worlds([](Rank& my) {
    sweep(my.n, [&](DType type, std::int64_t count) {
      const int step = count <= 10000 ? 1 : 3;
      for (int root = 0; root < my.n; root += step) {
        const Buffer buffer = of_rank(my.context, type, count, my.rank);
        my.transport.broadcast(buffer, root);
        // What the root does next is not for the others to see.
        if (my.rank == root && count > 0) {
          std::memset(buffer.tensor().data(), 0, static_cast<std::size_t>(buffer.tensor().bytes()));
        } else {
          EXPECT_TRUE(holds_of_rank(buffer, root)) << "root " << root;
        }
      }
    });
  });
}

RANK_TEST(ThreadsGroups, AllGatherInPlaceAndApart) {
  all_worlds([](Rank& my) {
    sweep(my.n, [&](DType type, std::int64_t count) {
      const auto [first, mine] = part_of(count, my.n, my.rank);
      const Buffer part = of_rank(my.context, type, mine, my.rank);
      const Buffer apart = blank(my.context, type, count), inside = blank(my.context, type, count);
      const Tensor place = inside.tensor().part(first, mine);
      if (mine > 0) {
        std::memcpy(place.data(), part.tensor().data(), static_cast<std::size_t>(place.bytes()));
      }
      my.transport.all_gather(part, apart);
      my.transport.all_gather(place, inside);
      for (int r = 0; r < my.n; ++r) {
        const auto [begin, length] = part_of(count, my.n, r);
        EXPECT_TRUE(holds_of_rank(apart.tensor().part(begin, length), r));
        EXPECT_TRUE(holds_of_rank(inside.tensor().part(begin, length), r));
      }
    });
  });
}

RANK_TEST(ThreadsGroups, ReduceScatter) {
  all_worlds([](Rank& my) {
    sweep(my.n, [&](DType type, std::int64_t count) {
      const auto [first, mine] = part_of(count, my.n, my.rank);
      const Buffer whole = of_rank(my.context, type, count, my.rank);
      const Buffer sum = blank(my.context, type, mine), max = blank(my.context, type, mine);
      my.transport.reduce_scatter(whole, sum, Reduction::sum);
      my.transport.reduce_scatter(whole, max, Reduction::max);
      EXPECT_TRUE(holds(sum, [&, start = first](std::int64_t i) {
        return my.n * (value(0, start + i) - 1) + my.n * (my.n + 1) / 2;
      }));
      EXPECT_TRUE(
          holds(max, [&, start = first](std::int64_t i) { return value(my.n - 1, start + i); }));
      EXPECT_TRUE(holds_of_rank(whole, my.rank));
    });
  });
}

RANK_TEST(ThreadsGroups, CollectivesOverOtherSizesFailOnAllRanks) {
  world_of(3, [](Rank& my) {
    const Buffer t = blank(my.context, DType::f32, my.rank == 2 ? 11 : 10);
    const char* said = "a collective over 10 x f32 on rank 0 and 11 x f32 on rank 2";
    for (int k = 0; k < 2; ++k) {  // and the next one works as before
      const auto text = message_of<Failure>([&] { my.transport.all_reduce(t, Reduction::sum); });
      EXPECT_TRUE(has(text, said)) << text;
    }
    EXPECT_THROW(my.transport.broadcast(t, 0), Failure);
    EXPECT_THROW(my.transport.all_gather(t, t), Failure);
    EXPECT_TRUE(holds(t, [](std::int64_t) { return -1; }));
  });
}

// One rank throws; the others wait for it in every way there is, and do not wait on.
ONE_RANK_TEST(ThreadsGroups, ARankThatThrowsEndsTheOthers) {
  using Wait = std::function<void(Context&, Communicator&, Tensor)>;
  const std::vector<Wait> waits = {
      [](Context& c, Communicator&, Tensor t) { c.world.all_reduce(t); },
      [](Context& c, Communicator&, Tensor t) { c.world.receive(1, t); },
      [](Context& c, Communicator&, Tensor t) { c.world.exchange(to(1, t), from(1, t)); },
      [](Context& c, Communicator&, Tensor) { c.world.barrier(); },
      [](Context&, Communicator& group, Tensor t) { group.broadcast(t, 1); },
      [](Context& c, Communicator&, Tensor) { c.world.split("more", [](int) { return 0; }); },
      [](Context& c, Communicator&, Tensor t) {
        c.world.async([t](Communicator& lane) { lane.all_reduce(t); }).wait();
      }};
  for (const bool guard : {true, false}) {
    for (const Wait& wait : waits) {
      CommonOptions options;
      options.guard = guard;
      const auto said = message_of<OutOfMemory>([&] {
        run_world(3, options, [&](Context& c) {
          Communicator group = c.world.split("group", [](int) { return 0; });
          const Buffer b(c.device, Category::workspace, 1, 10'000);
          if (c.rank() == 1) throw OutOfMemory("this rank alone has no more");
          wait(c, group, b);
        });
      });
      EXPECT_EQ(said, "this rank alone has no more");
    }
  }
}

// A dry run: shapes without numbers. All of it happens, in the same order, and touches no memory.
RANK_TEST(ThreadsGroups, TensorsWithoutNumbers) {
  all_worlds([](Rank& my) {
    const std::int64_t count = std::int64_t{1} << 40;
    const auto nothing = [&](std::int64_t elements) {
      return Tensor(my.context.device, nullptr, DType::f32, 1, elements);
    };
    const Tensor whole = nothing(count), part = nothing(part_of(count, my.n, my.rank).count);
    my.start({to(my.right, whole), from(my.left, whole)})->wait();
    my.start({to(my.right, nothing(5)), from(my.left, nothing(5))})->wait();
    my.transport.all_reduce(whole, Reduction::sum);
    my.transport.broadcast(whole, my.n - 1);
    my.transport.all_gather(part, whole);
    my.transport.reduce_scatter(whole, part, Reduction::max);
    const auto text = message_of<Failure>([&] {
      my.start({to(my.right, nothing(5)), from(my.left, nothing(6))})->wait();
    });
    EXPECT_TRUE(has(text, "waits for 24 bytes")) << text;
  });
}

}  // namespace
}  // namespace fivecuts
