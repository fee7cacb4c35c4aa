#include <algorithm>
#include <cmath>

#include "ch07_zero/checks/measured.hpp"

using namespace fivecuts;
using namespace fivecuts::exercise;

namespace {

/// What the learner's code asked for while it ran.
struct Calls {
  std::vector<std::size_t> order;
  std::int64_t together = 0;  ///< the most bytes beside the shards when a gradient was computed
  std::size_t while_at = 0;   ///< the layer of that moment
};

/// Fresh memory holds nothing in particular: here, what no sum survives.
void spoil_free_memory(Context& context) {
  std::vector<Buffer> gradients;
  for (const std::int64_t count : layer_counts) {
    gradients.emplace_back(context.device, Category::gradient, 1, count);
    copy_in(std::vector<float>(static_cast<std::size_t>(count), std::nanf("")), gradients.back());
  }
}

void check_micro_batch(ExerciseCheck& check, int micro_batch, const std::vector<Tensor>& shards,
                       all_reduce::Workspace& work) {
  Communicator& comm = check.comm();
  Context& context = check.context();
  const int n = comm.size(), r = comm.rank();
  const std::size_t layers = layer_counts.size();
  const std::int64_t live = context.memory.live();
  Calls calls;
  const auto add_gradient = [&](std::size_t k, Tensor to) {
    if (k >= layers || to.count() != layer_counts[k]) {
      fail(
          fmt::format("add_gradient({}, to) of {} elements: there are {} layers, and `to` is as "
                      "long as the layer's bucket",
                      k, to.count(), layers));
    }
    calls.order.push_back(k);
    const std::int64_t beside = context.memory.live() - live;
    if (beside > 4 * layer_counts[k] && beside > calls.together) {
      calls.together = beside;
      calls.while_at = k;
    }
    const Buffer addend = loaded(context, Category::workspace, of_rank(r, k, layer_counts[k]));
    add(to, addend);
  };
  const Used used = measured(check, [&] {
    add_and_release(comm, context.device, shards, layer_counts, add_gradient, work);
  });
  std::vector<std::size_t> want_order;
  for (std::size_t k = layers; k-- > 0;) want_order.push_back(k);
  check.holds(
      calls.order == want_order,
      "add_gradient(k, ...) is to be called once for each layer, from the last to the first");
  std::int64_t sent = 0;
  for (std::size_t k = 0; k < layers; ++k) {
    const Part mine = part_of(layer_counts[k], n, r);
    const auto sum = part(sum_of_ranks(n, k, layer_counts[k]), mine),
               own = part(of_rank(r, k, layer_counts[k]), mine);
    const ExerciseCheck::Mistake mistakes[] = {
        {scaled(own, micro_batch),
         "that is of this rank's own gradient: nothing was summed over "
         "the ranks"},
        {sum, "only the last micro-batch is in it: the others were overwritten"},
        {scaled(sum, micro_batch - 1), "nothing was added to the shard"}};
    check.equal(fmt::format("micro-batch {}, layer {}, this rank's shard", micro_batch, k),
                copy_out(shards[k]), scaled(sum, micro_batch),
                std::span(mistakes).first(micro_batch > 1 ? 3 : 1));
    sent += reduce_scatter_elements(layer_counts[k], n, r);
  }
  check.holds(calls.together == 0,
              fmt::format("when the gradient of layer {} was computed, rank {} still held {} bytes "
                          "beside its shards, and a gradient of that layer has {}: release each as "
                          "soon as it is reduced",
                          calls.while_at, r, calls.together, 4 * layer_counts[calls.while_at]));
  // The check's own addend is there beside the gradient.
  const std::int64_t largest = std::ranges::max(layer_counts);
  check.at_most("held beside its shards at the peak, in bytes", used.allocated, 2 * 4 * largest);
  check.at_most("sent elements", used.sent.sent / 4, sent);
}

void check_step(ExerciseCheck& check) {
  Context& context = check.context();
  std::vector<Buffer> shards;
  for (const std::int64_t count : layer_counts) {
    const Part mine = part_of(count, context.size(), context.rank());
    shards.emplace_back(context.device, Category::gradient, 1, mine.count);
    zero(shards.back());
  }
  all_reduce::Workspace work;
  make_ready(work, context, std::ranges::max(layer_counts));
  for (int m = 1; m <= 3; ++m) {
    spoil_free_memory(context);
    check_micro_batch(check, m, views(shards), work);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run_exercise(argc, argv, "ch07_ex2",
                      "the sum over ranks and micro-batches in each shard, one gradient whole at a "
                      "time",
                      check_step);
}
