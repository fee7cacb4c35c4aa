#include <utility>

#include "ch02_data_parallel/beyond/beyond.hpp"

namespace fivecuts::data_parallel {

std::int64_t copied_bucket(Replica& replica, Counts samples, Communicator& comm,
                           const AllReduce& all_reduce) {
  Device& device = *replica.gradients.front().tensor().device();
  const Buffer bucket(device, Category::workspace, 1, parameter_count(replica.shape),
                      replica.precision);
  std::int64_t at = 0;
  const auto next = [&](Tensor gradient) {
    const std::int64_t first = std::exchange(at, at + gradient.count());
    return bucket.tensor().part(first, gradient.count());
  };
  for (const Tensor gradient : replica.gradients) copy(gradient, next(gradient));
  all_reduce(comm, bucket);
  at = 0;
  for (const Tensor gradient : replica.gradients) copy(next(gradient), gradient);
  return samples.global;
}

std::int64_t own_order(Replica& replica, Counts samples, Communicator& comm, const AllReduce&) {
  const int n = comm.size(), r = comm.rank();
  for (const Tensor gradient : replica.gradients) {
    Device& device = *gradient.device();
    const Buffer mine(device, Category::workspace, 1, gradient.count(), gradient.type());
    const Buffer theirs(device, Category::workspace, 1, gradient.count(), gradient.type());
    copy(gradient, mine);
    // r + (r+1) + (r+2) + ...: on each rank the order starts elsewhere.
    for (int step = 1; step < n; ++step) {
      comm.exchange(to((r - step + n) % n, mine), from((r + step) % n, theirs));
      add(gradient, theirs);
    }
  }
  return samples.global;
}

}  // namespace fivecuts::data_parallel
