#include <cmath>

#include "ch02_data_parallel/exercise.hpp"

using namespace fivecuts;

namespace {

constexpr std::int64_t count = 1000;

/// The gradient sum of micro-batch m on a rank: integers, so that every sum is exact.
double part_of_sum(int rank, int m, std::int64_t i) {
  return static_cast<double>((5 * rank + 3 * m + i) % 13 - 6);
}

void check_case(ExerciseCheck& check, int micro_batches) {
  Communicator& comm = check.comm();
  const std::int64_t samples = 6 * comm.size() * micro_batches;
  std::vector<double> sum(count), last(count), own(count);
  for (std::int64_t i = 0; i < count; ++i) {
    for (int m = 0; m < micro_batches; ++m) {
      own[static_cast<std::size_t>(i)] += part_of_sum(comm.rank(), m, i);
    }
    for (int r = 0; r < comm.size(); ++r) {
      for (int m = 0; m < micro_batches; ++m) {
        sum[static_cast<std::size_t>(i)] += part_of_sum(r, m, i);
      }
      last[static_cast<std::size_t>(i)] += part_of_sum(r, micro_batches - 1, i);
    }
  }
  const auto by = [&](std::vector<double> values, double divisor) {
    for (double& value : values) value /= divisor;
    return values;
  };
  const auto all = static_cast<double>(samples);
  const ExerciseCheck::Mistake mistakes[] = {
      {sum, "that is the sum: it has not been divided by the number of samples"},
      {by(sum, all * micro_batches),
       "it was divided twice: by the samples and by the micro-batches"},
      {by(sum, all * comm.size()), "it was divided twice: by the samples and by the ranks"},
      {by(sum, all * all), "it was divided twice by the number of samples"},
      {own, "that is this rank's own sum: nothing was summed over the ranks, and nothing divided"},
      {by(own, all), "that is this rank's own part: nothing was summed over the ranks"},
      {by(last, all), "only the last micro-batch is in it: the others were overwritten"}};

  const Buffer gradient(check.context().device, Category::gradient, 1, count),
      addend(check.context().device, Category::workspace, 1, count);
  copy_in(std::vector<float>(count, std::nanf("")), gradient);  // it holds nothing in particular
  ExerciseCheck::Reductions used;
  std::int64_t computed = 0, outside = 0;
  exercise::accumulate(
      comm, check.counted(used), micro_batches,
      [&](int m, Tensor to) {
        ++computed;
        outside += m < 0 || m >= micro_batches ? 1 : 0;
        std::vector<float> part;
        for (std::int64_t i = 0; i < count; ++i) {
          part.push_back(static_cast<float>(part_of_sum(comm.rank(), m, i)));
        }
        copy_in(part, addend);
        add(to, addend);
      },
      samples, gradient);
  check.holds(outside == 0,
              fmt::format("micro-batches are numbered 0 to {}; another one was asked for",
                          micro_batches - 1));
  check.equal(fmt::format("{} micro-batches", micro_batches), copy_out(gradient), by(sum, all),
              mistakes);
  check.at_most("computed micro-batches", computed, micro_batches);
  check.nothing_but(used);
  check.at_most("calls of the all-reduce", used.calls, 1);
  check.at_most("all-reduced elements", used.elements, count);
}

}  // namespace

int main(int argc, char** argv) {
  return run_exercise(argc, argv, "ch02_ex2", "the mean over all micro-batches, with one reduction",
                      [](ExerciseCheck& check) {
                        check_case(check, 3);
                        check_case(check, 1);
                      });
}
