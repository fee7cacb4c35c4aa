#include <cmath>

#include "ch07_zero/checks/measured.hpp"

using namespace fivecuts;
using namespace fivecuts::exercise;

namespace {

constexpr AdamOptions options{.learning_rate = 0.1f};
constexpr int steps = 3;

double start(std::int64_t i) { return 1 + 0.25 * static_cast<double>(i % 5); }
/// Another gradient in each step, so that Adam's steps are not all alike.
double gradient_of(int rank, int step, std::int64_t i) {
  return value(rank, static_cast<std::size_t>(step), i) * (i % 2 == 0 ? 1 : -1);
}

/// Adam in double precision on elements that never were cut. The gradient's mean is taken over what
/// `divisor` says.
struct Reference {
  explicit Reference(std::int64_t count) : m(static_cast<std::size_t>(count)), v(m) {
    for (std::int64_t i = 0; i < count; ++i) weights.push_back(start(i));
  }
  void step(const std::vector<double>& gradient, double divisor) {
    const auto b1 = static_cast<double>(options.beta1), b2 = static_cast<double>(options.beta2);
    ++t;
    for (std::size_t i = 0; i < m.size(); ++i) {
      const double g = gradient[i] / divisor;
      m[i] = b1 * m[i] + (1 - b1) * g;
      v[i] = b2 * v[i] + (1 - b2) * g * g;
      weights[i] -=
          static_cast<double>(options.learning_rate) * (m[i] / (1 - std::pow(b1, t))) /
          (std::sqrt(v[i] / (1 - std::pow(b2, t))) + static_cast<double>(options.epsilon));
    }
  }
  std::vector<double> weights, m, v;
  int t = 0;
};

std::vector<double> gradient_of_ranks(int first, int end, int step, std::int64_t count) {
  std::vector<double> sum(static_cast<std::size_t>(count));
  for (int r = first; r < end; ++r) {
    for (std::int64_t i = 0; i < count; ++i) {
      sum[static_cast<std::size_t>(i)] += gradient_of(r, step, i);
    }
  }
  return sum;
}

/// `all` with everything but `mine` as it was in `old`.
std::vector<double> only(Part mine, const std::vector<double>& all, std::vector<double> old) {
  for (std::int64_t i = mine.first; i < mine.first + mine.count; ++i) {
    old[static_cast<std::size_t>(i)] = all[static_cast<std::size_t>(i)];
  }
  return old;
}

void check_case(ExerciseCheck& check, std::int64_t count) {
  Communicator& comm = check.comm();
  Context& context = check.context();
  const int n = comm.size(), r = comm.rank();
  const Part mine = part_of(count, n, r);
  const std::int64_t samples = 7 * n;
  Reference right(count), unsummed(count);
  const Buffer parameters = loaded(context, Category::parameter, right.weights);
  AdamState optimizer(context.device, mine.count);
  all_reduce::Workspace work;
  make_ready(work, context, count);
  for (int step = 0; step < steps; ++step) {
    const auto own = gradient_of_ranks(r, r + 1, step, count),
               sum = gradient_of_ranks(0, n, step, count);
    const auto before = right.weights;
    right.step(sum, static_cast<double>(samples));
    unsummed.step(own, static_cast<double>(samples));
    const Buffer gradient = loaded(context, Category::gradient, own);
    const Used used = measured(check, [&] {
      update_own_shard(comm, parameters, gradient, samples, optimizer, options, work);
    });
    const std::string where = fmt::format("{} elements, update {}", count, step + 1);
    // First what is this rank's alone: Adam's steps hide a gradient of the wrong size, m does not.
    const auto m = part(right.m, mine);
    const ExerciseCheck::Mistake of_m[] = {
        {scaled(m, 1.0 / n),
         "it was divided twice: by the samples and by the ranks; the weights "
         "do not show it, since Adam divides by the size of the gradient"},
        {scaled(m, static_cast<double>(samples)),
         "that is of the sum: it has not been divided by the number of samples"},
        {part(unsummed.m, mine),
         "that is of this rank's own gradient: it was not summed over the ranks"}};
    check.at_most("allocated bytes, where its own shard is all that it updates", used.allocated, 0);
    check.equal(where + ", the first moment of the own shard", copy_out(optimizer.m), m, of_m);
    const ExerciseCheck::Mistake mistakes[] = {
        {before, "no weight has moved"},
        {only(mine, right.weights, before),
         "only the own shard has moved: the owners' new weights have not come to this rank"}};
    check.equal(where + ", weights", copy_out(parameters), right.weights, mistakes);
    check.at_most("sent elements", used.sent.sent / 4,
                  reduce_scatter_elements(count, n, r) + all_gather_elements(count, n, r));
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run_exercise(argc, argv, "ch07_ex1",
                      "all weights new everywhere, each updated once; two times (N - 1)/N sent",
                      [](ExerciseCheck& check) {
                        for (const std::int64_t count : layer_counts) check_case(check, count);
                      });
}
