#include "ch03_allreduce/demos.hpp"

#include "ch03_allreduce/numbers.hpp"
#include "common/support/units.hpp"

namespace fivecuts::all_reduce {
namespace {

Buffer numbers_of(Context& context, std::int64_t elements) {
  Buffer x(context.device, Category::gradient, 1, elements);
  fill(x, [&](std::int64_t) { return context.rank() + 1; });
  return x;
}

bool is_last(const Context& context) { return context.rank() == context.size() - 1; }

// Each waits until its message is taken, and nobody takes one: a circle. A library that keeps short
// messages for the receiver hides it.
void ungrouped(Context& context, std::int64_t elements) {
  const int n = context.size(), r = context.rank(), left = (r + n - 1) % n, right = (r + 1) % n;
  const Buffer x = numbers_of(context, elements), incoming = numbers_of(context, elements);
  const auto chunk = [&](const Buffer& of, int c) {
    const auto [first, count] = part_of(elements, n, c % n);
    return of.tensor().part(first, count);
  };
  for (int step = 1; step < n; ++step) {
    context.world.send(left, chunk(x, r + step));
    context.world.receive(right, chunk(incoming, r + step + 1));
    add(chunk(x, r + step + 1), chunk(incoming, r + step + 1));
  }
}

void mismatched_count(Context& context, std::int64_t elements) {
  Workspace work;
  const Buffer x = numbers_of(context, elements + (is_last(context) ? context.size() : 0));
  ring(context.world, x, Reduction::sum, work);
}

void skipped_rank(Context& context, std::int64_t elements) {
  if (is_last(context)) return;  // to the end of its run
  Workspace work;
  const Buffer x = numbers_of(context, elements);
  ring(context.world, x, Reduction::sum, work);
}

void swapped_order(Context& context, std::int64_t elements) {
  Workspace work;
  const Buffer weights = numbers_of(context, elements),
               biases = numbers_of(context, elements + context.size());
  ring(context.world, is_last(context) ? biases : weights, Reduction::sum, work);
  ring(context.world, is_last(context) ? weights : biases, Reduction::sum, work);
}

}  // namespace

std::span<const Demo> all_demos() {
  static constexpr Demo demos[] = {
      {"ungrouped", "every rank sends to its left neighbour before it receives from the right one",
       ungrouped},
      {"mismatched-count", "the last rank's tensor has an element more in each chunk",
       mismatched_count},
      {"skipped-rank", "the last rank does not come to the all-reduce", skipped_rank},
      {"swapped-order", "the last rank reduces two tensors in the other order", swapped_order}};
  return demos;
}

void show(const Demo& demo, Context& context, std::int64_t elements) {
  const std::int64_t chunk = part_of(elements, context.size(), 0).count;
  context.say("demo {}: {}\n{} ranks, chunks of {}\n", demo.name, demo.about, context.size(),
              show_bytes(static_cast<double>(chunk * size_of(DType::f32))));
  context.world.barrier();  // said before anything goes wrong
  demo.run(context, elements);
  context.device.synchronize();  // a GPU may still wait for a message that the host is done with
  context.world.barrier();
  context.say(
      "went well: the library kept messages this short until they were taken, so no send waited\n");
}

}  // namespace fivecuts::all_reduce
