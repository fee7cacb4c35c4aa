// What a step asks of a GPU, at every stage. On the cpu the same test holds of nothing.
#include "ch07_zero/test_cases.hpp"

namespace fivecuts::zero_redundancy {
namespace {

// For its loss, at the end: gathers, reductions, the norm and the update follow one another on the
// device.
RANK_TEST(Gpu, AStepWaitsForItOnce) {
  Context& context = test_context();
  const bool on_gpu = context.device.kind() == Device::Kind::cuda;
  if (on_gpu && !context.options.nccl) return;  // staged
  const Communicator comm = dp();
  for (const std::int64_t micro_batches : {1, 3}) {
    const std::vector<Shard> shards = some_shards(comm, 34, micro_batches);
    for_stages({.clip = 0.5}, [&](const Settings& settings) {
      Trainer trainer(context.device, comm, uneven(), 3, settings);
      for (int step = 0; step < 3; ++step) {
        const std::int64_t before = context.device.host_waits();
        trainer.step(shards, {});
        EXPECT_EQ(context.device.host_waits() - before, on_gpu ? 1 : 0);
      }
    });
  }
}

}  // namespace
}  // namespace fivecuts::zero_redundancy
