#include <cmath>
#include <set>

#include "ch02_data_parallel/exercise.hpp"
#include "common/model/random.hpp"

using namespace fivecuts;

namespace {

constexpr std::int64_t count = 1000;
constexpr float bound =
    0.1f;  // no power of two: the products fill all 24 bits, so sums have to be rounded

std::uint32_t tensor_of(int step, int rank) {
  return static_cast<std::uint32_t>(100 * step + rank);
}

/// How much the ranks' copies differ after some steps that add each step's gradient sum to a
/// weight.
void check_run(ExerciseCheck& check, int steps) {
  Communicator& comm = check.comm();
  Device& device = check.context().device;
  const Buffer weights(device, Category::parameter, 1, count),
      gradient(device, Category::gradient, 1, count);
  const Buffer workspace(device, Category::workspace, comm.size(), count);
  zero(weights);
  for (int step = 0; step < steps; ++step) {
    fill_uniform(gradient, 1, tensor_of(step, comm.rank()), bound);
    const ExerciseCheck::Reductions none_allowed{.bytes_before =
                                                     check.context().traffic.modelled().sent};
    const Traffic before = check.context().traffic.measured();
    exercise::sum_over_ranks(comm, gradient, workspace);
    const Traffic used = check.context().traffic.measured() - before;
    check.nothing_but(none_allowed);
    std::vector<double> want(count);
    for (int r = 0; r < comm.size(); ++r) {
      for (std::int64_t i = 0; i < count; ++i) {
        want[static_cast<std::size_t>(i)] +=
            static_cast<double>(bound * uniform(1, tensor_of(step, r), 0, i));
      }
    }
    // The sums may be rounded, by as much as the largest of their terms allows; more is another
    // sum.
    bool near = true;
    const auto got = copy_out(gradient);
    for (std::size_t i = 0; i < want.size(); ++i) {
      near = near && std::abs(static_cast<double>(got[i]) - want[i]) <= 1e-6 * comm.size();
    }
    check.holds(near, fmt::format("step {}: rank {} does not hold the sum over the ranks", step,
                                  comm.rank()));
    check.at_most("sent elements", used.sent / 4, (comm.size() - 1) * count);
    add(weights, gradient);
    const auto hashes = comm.gather(hash(weights));
    const auto different = std::set(hashes.begin(), hashes.end()).size();
    check.holds(different == 1,
                fmt::format("after step {} the {} ranks hold {} different weights: sums are equal "
                            "up to rounding, but not their bits",
                            step, comm.size(), different));
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run_exercise(argc, argv, "ch02_ex4", "bitwise equal on every rank after 20 steps",
                      [](ExerciseCheck& check) { check_run(check, 20); });
}
