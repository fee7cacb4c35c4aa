// Memory that all ranks of a node reach.
#include "common/comm/shared_buffer.hpp"

#include "common/comm/context.hpp"
#include "common/compute/operations.hpp"
#include "common/support/test_main.hpp"

namespace fivecuts {
namespace {

RANK_TEST(SharedBuffer, EachSeesWhatTheOthersWroteAndItIsCounted) {
  Context& context = test_context();
  const int n = context.size(), r = context.rank();
  if (!SharedBuffer::possible(context.world)) {
    EXPECT_THROW(SharedBuffer(context.world, Category::workspace, 1, 4), Failure);
    return;
  }
  const std::int64_t before = context.memory.live(Category::activation);
  const Traffic traffic = context.traffic.measured();
  {
    SharedBuffer memory(context.world, Category::activation, 3, 5);
    EXPECT_EQ(context.memory.live(Category::activation) - before, 60);
    for (int round = 0; round < 100; ++round) {
      const auto number = [&](int rank) { return static_cast<float>(100 * rank + round); };
      copy_in(std::vector<float>(15, number(r)), memory);
      memory.meet(memory, Reduction::sum);
      const auto places = memory.everywhere(memory.tensor().part(1, 14));
      ASSERT_EQ(std::ssize(places), n);
      for (int k = 0; k < n; ++k) {
        EXPECT_EQ(copy_out(places[static_cast<std::size_t>(k)]), std::vector<float>(14, number(k)));
      }
      memory.meet(memory, Reduction::sum);  // nobody writes the next numbers before all have read
    }
  }
  EXPECT_EQ(context.memory.live(Category::activation), before);
  const Traffic used = context.traffic.measured() - traffic;
  EXPECT_EQ(used, (Traffic{100 * (n - 1) * 56, 100 * (n - 1) * 56, 0, 0}));
}

// Its memory may outlive it, as a Buffer that another object keeps.
RANK_TEST(SharedBuffer, LendsItsMemory) {
  Context& context = test_context();
  if (!SharedBuffer::possible(context.world)) return;
  Buffer kept;
  {
    SharedBuffer memory(context.world, Category::gradient, 1, 7, DType::i64);
    kept = memory.take();
    EXPECT_TRUE(memory.holds(kept));
    EXPECT_TRUE(memory.holds(kept.tensor().part(7, 0)));
    EXPECT_FALSE(memory.holds(Buffer(context.device, Category::gradient, 1, 7, DType::i64)));
    EXPECT_FALSE(memory.holds(Tensor()));
  }
  copy_in(std::vector<std::int64_t>(7, 4), kept);
  EXPECT_EQ(copy_out_i64(kept), std::vector<std::int64_t>(7, 4));
  EXPECT_EQ(context.memory.live(Category::gradient), 56);
}

}  // namespace
}  // namespace fivecuts
