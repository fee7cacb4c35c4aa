// What a step asks of a GPU. On the cpu the same tests hold of nothing.
#include <cstdio>

#include "ch02_data_parallel/beyond/beyond.hpp"
#include "ch02_data_parallel/training.hpp"
#include "common/support/test_main.hpp"

namespace fivecuts::data_parallel {
namespace {

struct Start {
  Context& context = test_context();
  Communicator comm = context.world.split("dp", [](int) { return 0; });
  const Digits digits = load_digits();
  const std::vector<std::int64_t> rows = batches_of(digits.train.count(), 34, 5, 0).front();
  Replica replica{context.device, mlp_shape(64, 48, 10, 3), 3};
  std::vector<Shard> shards = load_shards(context.device, digits.train, rows, comm, 1);
  std::int64_t waits_of(const std::function<void()>& step) const {
    const std::int64_t before = context.device.host_waits();
    step();
    return context.device.host_waits() - before;
  }
};

// For its loss, at the end: all else is computed and sent in the order in which it was asked for.
RANK_TEST(Gpu, AStepWaitsForItOnce) {
  Start s;
  if (s.context.device.kind() == Device::Kind::cuda && !s.context.options.nccl) return;  // staged
  const std::int64_t once = s.context.device.kind() == Device::Kind::cuda ? 1 : 0;
  for (int k = 0; k < 3; ++k) {
    for (const Rung rung : {gather_broadcast, per_tensor, per_layer, copied_bucket}) {
      EXPECT_EQ(s.waits_of([&] {
        training_step(s.replica, s.shards[0], s.comm, rung, library_all_reduce, {});
      }),
                once);
    }
    EXPECT_EQ(s.waits_of(
                  [&] { overlapped_step(s.replica, s.shards[0], s.comm, library_all_reduce, {}); }),
              once);
  }
}

/// A line among those of CUDA_EMULATOR_TRACE=1.
void say(const char* what) { std::fprintf(stderr, "step: %s\n", what); }

// Read by gpu_trace.sh, which counts what each part of these steps starts, and when.
RANK_TEST(Gpu, StepsToBeTraced) {
  Start s;
  Context& context = s.context;
  for (int k = 0; k < 2; ++k)
    training_step(s.replica, s.shards[0], s.comm, per_layer, library_all_reduce, {});
  context.device.synchronize();
  say("plain");
  zero_gradients(s.replica);
  const Buffer losses = add_local_gradients(s.replica, s.shards[0]);
  const std::int64_t samples = per_layer(s.replica, {s.shards[0].rows(), s.shards[0].global_rows},
                                         s.comm, library_all_reduce);
  update(s.replica, samples, {});
  say("asked for");
  context.device.synchronize();
  say("done");
  say("preparing");
  Replica rounded(context.device, mlp_shape(64, 48, 10, 3), 3, DType::bf16);
  const std::vector<Shard> shards =
      load_shards(context.device, s.digits.train, s.rows, s.comm, 1, DType::bf16);
  context.device.synchronize();
  say("rounding");
  training_step(rounded, shards[0], s.comm, per_layer, library_all_reduce, {});
  say("done");
  say("overlapped");
  overlapped_step(s.replica, s.shards[0], s.comm, library_all_reduce, {});
  say("done");
}

}  // namespace
}  // namespace fivecuts::data_parallel
