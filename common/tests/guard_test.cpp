// What the guard says and compares; the runs that it ends are in faults.cpp.
#include "common/comm/guard.hpp"

#include <cstring>

#include "common/support/test_main.hpp"

namespace fivecuts {
namespace {

Envelope made(Operation operation, std::int64_t count, DType type = DType::f32) {
  Envelope e;
  e.operation = operation;
  e.count = count;
  e.type = type;
  return e;
}

RANK_TEST(Guard, DescribesEveryOperation) {
  Envelope e = made(Operation::all_reduce, 24);
  EXPECT_EQ(describe(e), "all_reduce of 24 x f32");
  e.reduction = Reduction::max;
  EXPECT_EQ(describe(e), "all_reduce of 24 x f32 (max)");
  e.operation = Operation::reduce_scatter;
  EXPECT_EQ(describe(e), "reduce_scatter of 24 x f32 (max)");
  e = made(Operation::broadcast, 7, DType::i64);
  e.root = 2;
  EXPECT_EQ(describe(e), "broadcast of 7 x i64 from rank 2");
  EXPECT_EQ(describe(made(Operation::all_gather, 0)), "all_gather of 0 x f32");
  EXPECT_EQ(describe(made(Operation::send, 3)), "send of 3 x f32");
  EXPECT_EQ(describe(made(Operation::exchange, 3)), "exchange of 3 x f32");
  EXPECT_EQ(describe(made(Operation::end_of_run, 0)), "the end of its run");
  e = made(Operation::split, 0);
  std::strcpy(e.detail, "tp");
  EXPECT_EQ(describe(e), "split into 'tp'");
}

RANK_TEST(Guard, OneCollectiveHasOneOperationCountTypeRootAndReduction) {
  const Envelope first = made(Operation::all_reduce, 24);
  EXPECT_TRUE(same_collective(first, first));
  Envelope other = first;
  other.sequence = 7;  // each rank counts its own messages too
  other.time = 3;
  EXPECT_TRUE(same_collective(first, other));
  EXPECT_FALSE(same_collective(first, made(Operation::reduce_scatter, 24)));
  EXPECT_FALSE(same_collective(first, made(Operation::all_reduce, 25)));
  EXPECT_FALSE(same_collective(first, made(Operation::all_reduce, 24, DType::i64)));
  other = first;
  other.root = 0;
  EXPECT_FALSE(same_collective(first, other));
  other = first;
  other.reduction = Reduction::max;
  EXPECT_FALSE(same_collective(first, other));
  other = first;
  std::strcpy(other.detail, "tp");
  EXPECT_FALSE(same_collective(first, other));
}

RANK_TEST(Guard, AMessageFitsByCountAndType) {
  EXPECT_TRUE(fits(made(Operation::send, 5), 5, DType::f32));
  EXPECT_TRUE(fits(made(Operation::exchange, 0), 0, DType::f32));
  EXPECT_FALSE(fits(made(Operation::send, 5), 4, DType::f32));
  EXPECT_FALSE(fits(made(Operation::send, 5), 6, DType::f32));
  EXPECT_FALSE(fits(made(Operation::send, 5), 5, DType::i64));
  // As many bytes, but of another type.
  EXPECT_FALSE(fits(made(Operation::exchange, 2, DType::f32), 1, DType::i64));
  for (const Operation operation :
       {Operation::all_reduce, Operation::broadcast, Operation::all_gather,
        Operation::reduce_scatter, Operation::split, Operation::shared_memory,
        Operation::end_of_run}) {
    EXPECT_FALSE(fits(made(operation, 5), 5, DType::f32)) << name_of(operation);
  }
}

RANK_TEST(Guard, AWaitThatEndsInTimeIsNoFault) {
  Guard guard(0, 1, 0.2, true);
  for (int k = 0; k < 4; ++k) {
    auto watch = guard.watch([] { return "something"; });
    std::this_thread::sleep_for(std::chrono::milliseconds(80));
    watch.now("something else");
    const auto moved = std::move(watch);
  }
}

RANK_TEST(Guard, OneThatIsOffAsksForNoText) {
  Guard guard(0, 1, 0.01, false);
  bool asked = false;
  const auto watch = guard.watch([&] {
    asked = true;
    return "";
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_FALSE(asked);
}

}  // namespace
}  // namespace fivecuts
