#include "ch03_allreduce/demos.hpp"

#include <algorithm>

#include "ch03_allreduce/numbers.hpp"
#include "common/support/units.hpp"

namespace fivecuts::all_reduce {
namespace {

/// Rank r has factor * (r + 1) everywhere.
Buffer numbers_of(Context& context, std::int64_t elements, int factor = 1) {
  Buffer x(context.device, Category::gradient, 1, elements);
  fill(x, [&](std::int64_t) { return factor * (context.rank() + 1); });
  return x;
}

/// Collective. Numbers of all ranks that are not what such tensors add up to.
std::int64_t wrong_sums(Context& context, Tensor x, int factor = 1) {
  const double want = factor * context.size() * (context.size() + 1) / 2.0;
  const std::vector<double> got = numbers(x);
  const auto is_wrong = [&](double number) { return !(number == want); };
  std::int64_t wrong = 0;
  for (const std::int64_t of_rank :
       context.world.gather(std::int64_t{std::ranges::count_if(got, is_wrong)})) {
    wrong += of_rank;
  }
  return wrong;
}

bool is_last(const Context& context) { return context.rank() == context.size() - 1; }

// Each waits until its message is taken, and nobody takes one: a circle. A library that keeps short
// messages for the receiver hides it.
std::int64_t ungrouped(Context& context, std::int64_t elements) {
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
  context.device.synchronize();  // a GPU may still wait for a message that the host is done with
  const std::int64_t wrong = wrong_sums(context, chunk(x, r));
  context.say(
      "went well: the library kept messages this short until they were taken, so no send waited\n"
      "compared: {} of the {} sums are wrong\n",
      wrong, elements);
  return wrong;
}

std::int64_t mismatched_count(Context& context, std::int64_t elements) {
  Workspace work;
  const Buffer x = numbers_of(context, elements + (is_last(context) ? context.size() : 0));
  ring(context.world, x, Reduction::sum, work);
  return wrong_sums(context, x);
}

std::int64_t skipped_rank(Context& context, std::int64_t elements) {
  Workspace work;
  const Buffer x = numbers_of(context, elements);
  if (is_last(context)) return 0;  // to the end of the demo
  ring(context.world, x, Reduction::sum, work);
  return wrong_sums(context, x);
}

/// Two tensors, the second `longer` elements longer; the last rank takes them in the other order.
std::int64_t swapped(Context& context, std::int64_t elements, std::int64_t longer) {
  constexpr int factor = 2;  // the second tensor's numbers are twice the first one's
  Workspace work;
  const Buffer weights = numbers_of(context, elements),
               biases = numbers_of(context, elements + longer, factor);
  ring(context.world, is_last(context) ? biases : weights, Reduction::sum, work);
  ring(context.world, is_last(context) ? weights : biases, Reduction::sum, work);
  const std::int64_t wrong = wrong_sums(context, weights) + wrong_sums(context, biases, factor);
  const int n = context.size();
  context.say(
      "nobody noticed: both tensors are of one size and type\n"
      "compared: {} of the {} sums are wrong; the first of the weights is {}, and should be {}\n",
      wrong, 2 * elements * n, numbers(weights.tensor().part(0, 1))[0], n * (n + 1) / 2);
  return wrong;
}

std::int64_t swapped_order(Context& context, std::int64_t elements) {
  return swapped(context, elements, context.size());
}

std::int64_t swapped_equal(Context& context, std::int64_t elements) {
  return swapped(context, elements, 0);
}

}  // namespace

std::span<const Demo> all_demos() {
  static constexpr Demo demos[] = {
      {"ungrouped", "every rank sends to its left neighbour before it receives from the right one",
       ungrouped},
      {"mismatched-count", "the last rank's tensor has an element more in each chunk",
       mismatched_count},
      {"skipped-rank", "the last rank does not come to the all-reduce", skipped_rank},
      {"swapped-order", "the last rank reduces two tensors of two sizes in the other order",
       swapped_order},
      {"swapped-equal", "the last rank reduces two tensors of one size in the other order",
       swapped_equal}};
  return demos;
}

bool show(const Demo& demo, Context& context, std::int64_t elements) {
  const std::int64_t chunk = part_of(elements, context.size(), 0).count;
  context.say("demo {}: {}\n{} ranks, chunks of {}\n", demo.name, demo.about, context.size(),
              show_bytes(static_cast<double>(chunk * size_of(DType::f32))));
  context.world.barrier();  // said before anything goes wrong
  const std::int64_t wrong = demo.run(context, elements);
  context.world.barrier();
  return wrong == 0;
}

}  // namespace fivecuts::all_reduce
