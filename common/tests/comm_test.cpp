// Messages between ranks: what arrives, in which order, and what the traffic ledger says of it.
#include <algorithm>
#include <memory>

#include "common/tests/comm_fixture.hpp"

namespace fivecuts {
std::vector<std::int64_t> sizes(int ranks) {
  std::vector<std::int64_t> all = {0, 1, ranks - 1, ranks, ranks + 1, 1000, 1857};
  for (const std::int64_t bytes : {1 << 10, 1 << 12, 1 << 13, 1 << 15, 1 << 16, 1 << 17}) {
    for (const std::int64_t beside : {-16, -1, 0, 1}) all.push_back(bytes / 4 + beside);
  }
  all.push_back(1 << 20);
  return all;
}

namespace {

class Messages : public CommTest {};
INSTANTIATE_TEST_SUITE_P(, Messages, guards_and_types(), guard_and_type);

COMM_TEST(Messages, ASendIsReceived) {
  for (const std::int64_t count : sizes(n)) {
    for (int from_rank = 0; from_rank < n; ++from_rank) {
      const int to_rank = (from_rank + 1) % n;
      if (to_rank == from_rank) continue;
      if (rank == from_rank) comm.send(to_rank, of_rank(context, type, count, rank));
      if (rank != to_rank) continue;
      const Buffer got = blank(context, type, count);
      comm.receive(from_rank, got);
      EXPECT_TRUE(holds_of_rank(got, from_rank));
    }
  }
}

/// Four messages of other sizes to the right at once; the receives are waited for in order or last
/// first.
void four_at_once(Context& context, Communicator& comm, DType type, bool last_first) {
  const std::int64_t counts[] = {1000, 0, 1 << 18, 3};
  const int right = (comm.rank() + 1) % comm.size();
  const int left = (comm.rank() + comm.size() - 1) % comm.size();
  std::vector<Buffer> sent, got;
  std::vector<Pending> sends, receives;
  for (int k = 0; k < 4; ++k) {
    sent.push_back(of_rank(context, type, counts[k], 10 * k + comm.rank()));
    got.push_back(blank(context, type, counts[k]));
    receives.push_back(comm.ireceive(left, got.back()));
  }
  for (const Buffer& buffer : sent) sends.push_back(comm.isend(right, buffer));
  if (last_first) std::reverse(receives.begin(), receives.end());
  for (Pending& receive : receives) receive.wait();
  for (Pending& send : sends) send.wait();
  for (int k = 0; k < 4; ++k) {
    EXPECT_TRUE(holds_of_rank(got[static_cast<std::size_t>(k)], 10 * k + left)) << "message " << k;
  }
}
COMM_TEST(Messages, ImmediateOnesAreWaitedForInOrder) { four_at_once(context, comm, type, false); }
COMM_TEST(Messages, ImmediateOnesAreWaitedForLastFirst) { four_at_once(context, comm, type, true); }

COMM_TEST(Messages, AHandleThatGoesOutOfScopeWaits) {
  const Buffer sent = of_rank(context, type, 1 << 18, rank), got = blank(context, type, 1 << 18);
  {
    const Pending receive = comm.ireceive(left, got);
    const Pending send = comm.isend(right, sent);
  }
  EXPECT_TRUE(holds_of_rank(got, left));
  // A handle that is replaced waits too.
  const Buffer again = blank(context, type, 1 << 18);
  Pending send = comm.isend(right, sent), receive = comm.ireceive(left, again);
  receive = Pending();
  EXPECT_TRUE(holds_of_rank(again, left));
}

COMM_TEST(Messages, ManyBetweenTwoRanksKeepTheirOrder) {
  for (int k = 0; k < 100; ++k) {
    const std::int64_t count = k % 7 * 300;
    const Buffer got = blank(context, type, count);
    comm.exchange(to(right, of_rank(context, type, count, rank + k)), from(left, got));
    EXPECT_TRUE(holds_of_rank(got, left + k)) << "message " << k;
  }
}

class Exchange : public CommTest {};
INSTANTIATE_TEST_SUITE_P(, Exchange, guards_and_types(), guard_and_type);

COMM_TEST(Exchange, GoesAroundARing) {
  for (const std::int64_t count : sizes(n)) {
    const Buffer sent = of_rank(context, type, count, rank), got = blank(context, type, count);
    comm.exchange(to(left, sent), from(right, got));
    EXPECT_TRUE(holds_of_rank(got, right));
  }
}

COMM_TEST(Exchange, WithItself) {
  for (const std::int64_t count : sizes(n)) {
    const Buffer sent = of_rank(context, type, count, rank), got = blank(context, type, count);
    comm.exchange(to(rank, sent), from(rank, got));
    EXPECT_TRUE(holds_of_rank(got, rank));
  }
}

/// Another number of elements for every pair of ranks, none for some.
std::int64_t pair_count(int from_rank, int to_rank) { return (3 * from_rank + to_rank) % 5 * 3001; }

COMM_TEST(Exchange, WithAllPeersAtOnce) {
  std::vector<Buffer> sent, got;
  std::vector<Transfer> transfers;
  for (int r = 0; r < n; ++r) {
    sent.push_back(of_rank(context, type, pair_count(rank, r), 10 * rank + r));
    got.push_back(blank(context, type, pair_count(r, rank)));
    transfers.push_back(to(r, sent.back()));
    transfers.push_back(from(r, got.back()));
  }
  comm.exchange_all(transfers);
  for (int r = 0; r < n; ++r) {
    EXPECT_TRUE(holds_of_rank(got[static_cast<std::size_t>(r)], 10 * r + rank)) << "from " << r;
  }
}

COMM_TEST(Exchange, OfNothing) { comm.exchange_all({}); }

// A pipeline's last stage receives, computes on what came, and only then sends back; the stage
// before it has both in one exchange. So no send of an exchange may wait for a receive of it.
COMM_TEST(Exchange, MeetsAReceiveFollowedByASend) {
  for (const std::int64_t count : {std::int64_t{1}, std::int64_t{1} << 20}) {
    if (rank % 2 == 0 && rank + 1 < n) {
      const Buffer sent = of_rank(context, type, count, rank), got = blank(context, type, count);
      comm.exchange(to(rank + 1, sent), from(rank + 1, got));
      EXPECT_TRUE(holds(got, [&](std::int64_t i) { return value(rank, i) + 1; }));
    } else if (rank % 2 == 1) {
      const Buffer got = blank(context, type, count);
      comm.receive(rank - 1, got);
      EXPECT_TRUE(holds_of_rank(got, rank - 1));
      comm.send(rank - 1, of_rank(context, type, count, rank));
    }
  }
}

COMM_TEST(Exchange, FollowsImmediateMessagesOfTheSamePeer) {
  const std::int64_t count = 1 << 18;
  const Buffer first = of_rank(context, type, 5, 20 + rank), got_first = blank(context, type, 5);
  const Buffer second = of_rank(context, type, count, rank),
               got_second = blank(context, type, count);
  Pending receive = comm.ireceive(left, got_first);
  Pending send = comm.isend(right, first);
  comm.exchange(from(left, got_second), to(right, second));
  receive.wait();
  send.wait();
  EXPECT_TRUE(holds_of_rank(got_first, 20 + left));
  EXPECT_TRUE(holds_of_rank(got_second, left));
}

COMM_TEST(Messages, APeerOutOfRangeIsRefusedBeforeAnythingIsSent) {
  const Buffer buffer = blank(context, type, 1);
  EXPECT_THROW(comm.send(n, buffer), Failure);
  EXPECT_THROW(comm.receive(-1, buffer), Failure);
  EXPECT_THROW(comm.exchange(to(right, buffer), from(n, buffer)), Failure);
  EXPECT_THROW(comm.broadcast(buffer, n), Failure);
  EXPECT_EQ(context.traffic.measured(), Traffic{});
}

class Ledger : public CommTest {};
INSTANTIATE_TEST_SUITE_P(, Ledger, guards_and_types(), guard_and_type);

COMM_TEST(Ledger, CountsMessagesPerCommunicatorAndOperation) {
  const std::int64_t size = size_of(type);
  Communicator pairs = comm.split("pairs", [](int r) { return r / 2; });
  const Buffer sent = of_rank(context, type, 1857, rank), got = blank(context, type, 1857);
  {
    const Pending receive = comm.ireceive(left, got.tensor().part(0, 7));
    const Pending send = comm.isend(right, sent.tensor().part(0, 7));
  }
  comm.exchange(to(left, sent), from(right, got));
  comm.exchange(to(left, sent.tensor().part(0, 0)), from(right, got.tensor().part(0, 0)));
  if (pairs.size() == 2) pairs.exchange(to(1 - pairs.rank(), sent), from(1 - pairs.rank(), got));

  // What a rank sends to itself is on no wire.
  const std::int64_t wire = n > 1 ? 1 : 0, paired = pairs.size() == 2 ? 1 : 0;
  EXPECT_EQ(traffic("world", "send"), (Traffic{wire * 7 * size, wire * 7 * size, 0, wire}));
  EXPECT_EQ(traffic("world", "exchange"),
            (Traffic{wire * 1857 * size, wire * 1857 * size, 0, wire * 2}));
  EXPECT_EQ(traffic("pairs", "exchange"),
            (Traffic{paired * 1857 * size, paired * 1857 * size, 0, paired}));
  EXPECT_EQ(context.traffic.measured("world").messages, 3 * wire);
  EXPECT_EQ(context.traffic.modelled(), Traffic{});
}

COMM_TEST(Ledger, CountsAnAllToAllExactly) {
  std::vector<Buffer> sent, got;
  std::vector<Transfer> transfers;
  Traffic want;
  for (int r = 0; r < n; ++r) {
    sent.push_back(blank(context, type, pair_count(rank, r)));
    got.push_back(blank(context, type, pair_count(r, rank)));
    transfers.push_back(to(r, sent.back()));
    transfers.push_back(from(r, got.back()));
    if (r != rank) {
      want += {pair_count(rank, r) * size_of(type), pair_count(r, rank) * size_of(type), 0, 1};
    }
  }
  comm.exchange_all(transfers);
  EXPECT_EQ(traffic("world", "exchange"), want);
}

COMM_TEST(Ledger, CountsWhatAsyncSendsUnderTheSameName) {
  const Buffer sent = of_rank(context, type, 24, rank), got = blank(context, type, 24);
  comm.async([&](Communicator& lane) { lane.exchange(to(left, sent), from(right, got)); }).wait();
  const std::int64_t bytes = n > 1 ? 24 * size_of(type) : 0;
  EXPECT_EQ(traffic("world", "exchange"), (Traffic{bytes, bytes, 0, n > 1 ? 1 : 0}));
}

COMM_TEST(Ledger, DoesNotSeeTheControlChannelNorTheGuard) {
  comm.barrier();
  EXPECT_TRUE(comm.all_true(true));
  comm.gather(rank);
  comm.gather_text("text");
  const Communicator half = comm.split("half", [](int r) { return r % 2; });
  EXPECT_TRUE(context.traffic.rows().empty());
}

}  // namespace
}  // namespace fivecuts
