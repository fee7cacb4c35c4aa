// ch02's training step with this chapter's all-reduces: 4 layers W -> W with GELU, softmax loss,
// Adam, 64 rows per rank, fp32. The efficiency is that of weak scaling: the time of rank 0 by itself,
// while the others wait, over the time of all.
#include <optional>

#include "ch02_data_parallel/bench.hpp"
#include "ch03_allreduce/algorithms.hpp"
#include "ch03_allreduce/bench.hpp"

namespace fivecuts::all_reduce {
namespace {

using data_parallel::Replica;
using data_parallel::Shard;

constexpr std::int64_t rows = 64, layers = 4;

class Training {
 public:
  Training(Context& context, std::int64_t width, const Communicator& comm, std::string name)
      : name_(std::move(name)),
        comm_(comm),
        replica_(context.device, ModelShape(layers, LayerShape{width, width, true, true, false}),
                 1) {
    for (int k = 0; k < 32; ++k)
      batches_.push_back(data_parallel::random_shard(context.device, rows, width, comm_, k));
  }
  /// Puts the gradients where all ranks reach them.
  AllReduce share_gradients() {
    const auto memories = std::make_shared<std::vector<SharedBuffer>>();
    for (Buffer& gradient : replica_.gradients) {
      const std::int64_t count = gradient.tensor().count();
      gradient = memories->emplace_back(comm_, Category::gradient, 1, count).take();
    }
    return shared_in(memories);
  }
  void reduce_by(AllReduce all_reduce) { all_reduce_ = std::move(all_reduce); }
  void next() {
    const auto rung = all_reduce_ ? data_parallel::per_layer : data_parallel::none;
    training_step(replica_, batches_[at_++ % batches_.size()], comm_, rung, all_reduce_, {});
  }
  const std::string& name() const { return name_; }
  std::vector<double> seconds;

 private:
  std::string name_;
  Communicator comm_;
  Replica replica_;
  AllReduce all_reduce_;
  std::vector<Shard> batches_;
  std::size_t at_ = 0;
};

void time_width(Context& context, std::int64_t width, int rounds) {
  Communicator dp = context.world.split("dp", [](int) { return 0; });
  Communicator alone = context.world.split("alone", [](int rank) { return rank; });
  std::optional<Training> by_itself;
  if (context.rank() == 0) by_itself.emplace(context, width, alone, "alone");
  std::vector<std::unique_ptr<Training>> all;
  const auto add = [&](const char* name) -> Training& {
    return *all.emplace_back(std::make_unique<Training>(context, width, dp, name));
  };
  add("none");
  add("library").reduce_by(library_all_reduce);
  add("ring").reduce_by(with_workspace(ring));
  Training& sharing = add("shared");
  sharing.reduce_by(sharing.share_gradients());

  const auto step = [&](Training* training, bool warm) {
    const double seconds = time_of(context.world, 0, 3, [&] {
      if (training != nullptr) training->next();
    });
    context.world.barrier();
    if (training != nullptr && warm) training->seconds.push_back(seconds);
  };
  for (int round = -5; round < rounds; ++round) {
    step(by_itself ? &*by_itself : nullptr, round >= 0);
    for (const auto& training : all) step(training.get(), round >= 0);
  }
  if (context.rank() > 0) return;
  const double one = median(by_itself->seconds);
  context.say("training step, width {}: alone {:.2f} ms\n", width, one * 1e3);
  for (const auto& training : all) {
    const double seconds = median(training->seconds);
    context.say("  {:<8} {:.2f} ms on {} ranks, efficiency {:.2f}\n", training->name(),
                seconds * 1e3, dp.size(), one / seconds);
  }
}

}  // namespace

void time_training(Context& context, int rounds) {
  for (const std::int64_t width : {512, 1024}) time_width(context, width, rounds);
}

}  // namespace fivecuts::all_reduce
