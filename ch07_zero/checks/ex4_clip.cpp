#include <cmath>

#include "ch07_zero/checks/measured.hpp"

using namespace fivecuts;
using namespace fivecuts::exercise;

namespace {

constexpr std::int64_t samples = 12;

double squares(const std::vector<double>& values) {
  double sum = 0;
  for (const double one : values) sum += one * one;
  return sum;
}

/// `part_of_norm`: how long the gradient may be, as a part of what it is.
void check_case(ExerciseCheck& check, double part_of_norm) {
  Communicator& comm = check.comm();
  Context& context = check.context();
  const int n = comm.size(), r = comm.rank();
  std::vector<Buffer> shards;
  std::vector<double> mine;  // of all layers, one behind the other
  double all = 0, sum_of_norms = 0;
  for (std::size_t k = 0; k < layer_counts.size(); ++k) {
    const auto whole = sum_of_ranks(n, k, layer_counts[k]);
    const auto shard = part(whole, part_of(layer_counts[k], n, r));
    shards.push_back(loaded(context, Category::gradient, shard));
    mine.insert(mine.end(), shard.begin(), shard.end());
    all += squares(whole);
  }
  for (const double of_rank : comm.gather(squares(mine))) sum_of_norms += std::sqrt(of_rank);
  const double norm = std::sqrt(all) / samples, longest = part_of_norm * norm;
  const auto clipped_by = [&](double as_norm) {
    return scaled(mine, std::min(1.0, longest / as_norm) / samples);
  };
  double returned = 0;
  const Used used = measured(
      check, [&] { returned = clip(comm, context.device, views(shards), samples, longest); });
  const std::string where =
      fmt::format("a gradient of length {:.4g}, at most {:.4g}", norm, longest);
  const double own = std::sqrt(squares(mine)) / samples;
  const ExerciseCheck::Mistake of_norm[] = {
      {{own},
       "that is the norm of this rank's shards alone: each rank would clip by another factor"},
      {{norm * samples}, "that is the norm of the sum, not of the mean gradient"},
      {{norm / n}, "it was divided by the ranks too: `samples` is already that of all ranks"},
      {{norm / samples}, "it was divided by the samples twice"},
      {{sum_of_norms / samples},
       "that is a sum of norms: what adds up over shards is the squares"}};
  check.equal(where + ", the norm", std::vector{static_cast<float>(returned)}, std::vector{norm},
              of_norm);
  std::vector<float> got;
  for (const Buffer& shard : shards) {
    const auto values = copy_out(shard);
    got.insert(got.end(), values.begin(), values.end());
  }
  const ExerciseCheck::Mistake mistakes[] = {
      {scaled(mine, longest / norm / samples),
       "it was made longer: a gradient that is short enough stays as it is"},
      {mine, "that is the sum: the shards should hold the mean gradient"},
      {scaled(mine, 1.0 / samples), "that is the mean gradient, which is too long: not clipped"},
      {clipped_by(own), "it was clipped by the norm of this rank's shards alone"},
      {scaled(clipped_by(norm), samples), "it was clipped, but not divided by the samples"},
      {scaled(clipped_by(norm), 1.0 / n), "it was divided by the ranks too"}};
  check.equal(where + ", this rank's shards", got, clipped_by(norm), mistakes);
  check.at_most("sent elements", used.sent.sent / 4, n - 1);
}

}  // namespace

int main(int argc, char** argv) {
  return run_exercise(argc, argv, "ch07_ex4",
                      "one norm on all ranks, for a number from each rank to each other",
                      [](ExerciseCheck& check) {
                        for (const double longest : {0.25, 4.0, 0.9}) check_case(check, longest);
                      });
}
