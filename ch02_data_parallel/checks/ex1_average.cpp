#include <numeric>

#include "ch02_data_parallel/exercise.hpp"

using namespace fivecuts;

namespace {

// Gradients are small integers keyed by rank, sample and element, so that every sum is exact.
double gradient_of(std::int64_t rank, std::int64_t sample, std::int64_t i) {
  return static_cast<double>((7 * rank + 3 * sample + i) % 11 - 4);
}

std::vector<double> sum_of(std::int64_t rank, std::int64_t samples, std::int64_t count) {
  std::vector<double> sum(static_cast<std::size_t>(count));
  for (std::int64_t s = 0; s < samples; ++s) {
    for (std::int64_t i = 0; i < count; ++i)
      sum[static_cast<std::size_t>(i)] += gradient_of(rank, s, i);
  }
  return sum;
}

std::vector<double> scaled(std::vector<double> values, double factor) {
  for (double& value : values) value *= factor;
  return values;
}

/// One case: rank r has samples[r] samples.
void check_case(ExerciseCheck& check, const std::vector<std::int64_t>& samples,
                std::int64_t count) {
  Communicator& comm = check.comm();
  std::vector<double> sum(static_cast<std::size_t>(count)), means(sum);
  for (int r = 0; r < comm.size(); ++r) {
    const std::int64_t n = samples[static_cast<std::size_t>(r)];
    const auto of_rank = sum_of(r, n, count);
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] += of_rank[i];
      means[i] += n > 0 ? of_rank[i] / static_cast<double>(n) / comm.size() : 0;
    }
  }
  const auto total =
      static_cast<double>(std::accumulate(samples.begin(), samples.end(), std::int64_t{0}));
  const std::int64_t mine = samples[static_cast<std::size_t>(comm.rank())];
  const auto own = sum_of(comm.rank(), mine, count);
  const ExerciseCheck::Mistake mistakes[] = {
      {own, "that is this rank's own gradient: nothing was summed over the ranks"},
      {sum, "that is the sum: it has not been divided by the number of samples"},
      {scaled(sum, 1 / total / total), "it was divided twice by the number of samples"},
      {scaled(sum, 1 / total / comm.size()),
       "it was divided twice: by the samples and by the ranks"},
      {means, "that is the mean of the ranks' means: ranks with few samples count too much"},
      {scaled(sum, 1.0 / comm.size()),
       "the sum was divided by the number of ranks, not of samples"}};

  const Buffer gradient(check.context().device, Category::gradient, 1, count);
  copy_in(std::vector<float>(own.begin(), own.end()), gradient);
  ExerciseCheck::Reductions used;
  exercise::average(comm, check.counted(used), gradient, mine);
  check.equal(fmt::format("{} elements, this rank has {} samples", count, mine), copy_out(gradient),
              scaled(sum, 1 / total), mistakes);
  check.nothing_but(used);
  check.at_most("all-reduced elements", used.elements, count + 1);
}

}  // namespace

int main(int argc, char** argv) {
  return run_exercise(argc, argv, "ch02_ex1",
                      "the mean over all samples, with count + 1 elements reduced",
                      [](ExerciseCheck& check) {
                        const auto n = static_cast<std::size_t>(check.comm().size());
                        std::vector<std::int64_t> ragged(n), some_empty(n), equal(n, 4);
                        for (std::size_t r = 0; r < n; ++r) {
                          ragged[r] = 1 + 2 * static_cast<std::int64_t>(r);
                          some_empty[r] = r % 2 == 0 ? 5 : 0;
                        }
                        for (const auto& samples : {ragged, equal, some_empty}) {
                          check_case(check, samples, 1);
                          check_case(check, samples, 1857);
                        }
                      });
}
