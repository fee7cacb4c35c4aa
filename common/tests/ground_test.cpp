#include "common/support/test_main.hpp"
#include "common/compute/operations.hpp"
namespace fivecuts {
TEST(Communicator, ExchangesAroundARing) {
  Context& c = test_context();
  Communicator& w = c.world;
  Buffer a(c.device, Category::workspace, 1, 5, DType::i64), b(c.device, Category::workspace, 1, 5, DType::i64);
  for (int i = 0; i < 5; ++i) a.tensor().as<std::int64_t>()[i] = 100 * w.rank() + i;
  int n = w.size();
  w.exchange(to((w.rank() + 1) % n, a), from((w.rank() + n - 1) % n, b));
  int left = (w.rank() + n - 1) % n;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(b.tensor().as<std::int64_t>()[i], 100 * left + i);
  w.all_reduce(a);
  auto p = w.async([&](Communicator& l) { l.all_reduce(b); });
  p.wait();
  EXPECT_EQ(hash(a), hash(b));
}
}
