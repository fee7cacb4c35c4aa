#include "ch02_data_parallel/exercise.hpp"

using namespace fivecuts;

namespace {

/// Element i of gradient k on a rank; sums over ranks are exact.
double value(int rank, std::size_t k, std::int64_t i) {
  return static_cast<double>((rank + 1) * 100 + static_cast<std::int64_t>(k) * 17 + i % 97);
}

void check_case(ExerciseCheck& check, const std::vector<std::int64_t>& counts) {
  Communicator& comm = check.comm();
  Device& device = check.context().device;
  std::vector<Buffer> buffers;
  std::vector<Tensor> gradients;
  std::int64_t total = 0;
  for (std::size_t k = 0; k < counts.size(); ++k) {
    buffers.emplace_back(device, Category::gradient, 1, counts[k]);
    gradients.push_back(buffers.back());
    std::vector<float> mine;
    for (std::int64_t i = 0; i < counts[k]; ++i) {
      mine.push_back(static_cast<float>(value(comm.rank(), k, i)));
    }
    copy_in(mine, buffers.back());
    total += counts[k];
  }
  const Buffer bucket(device, Category::workspace, 1, total);
  check.context().memory.reset_peak();
  const std::int64_t before = check.context().memory.live();
  ExerciseCheck::Reductions used;
  exercise::reduce_in_bucket(comm, check.counted(used), gradients, bucket);
  for (std::size_t k = 0; k < counts.size(); ++k) {
    std::vector<double> want, own;
    for (std::int64_t i = 0; i < counts[k]; ++i) {
      double sum = 0;
      for (int r = 0; r < comm.size(); ++r) sum += value(r, k, i);
      want.push_back(sum);
      own.push_back(value(comm.rank(), k, i));
    }
    const ExerciseCheck::Mistake mistakes[] = {
        {own, "that is the rank's own gradient: the sum stayed in the bucket"}};
    check.equal(fmt::format("gradient {} of {}", k, counts.size()), copy_out(gradients[k]), want,
                mistakes);
  }
  check.nothing_but(used);
  check.at_most("calls of the all-reduce", used.calls, 1);
  check.at_most("allocated bytes", check.context().memory.peak() - before, 0);
}

}  // namespace

int main(int argc, char** argv) {
  return run_exercise(argc, argv, "ch02_ex3",
                      "every gradient summed, in one message and without a new buffer",
                      [](ExerciseCheck& check) {
                        check_case(check, {4096, 64, 1, 0, 650});
                        check_case(check, {7});
                      });
}
