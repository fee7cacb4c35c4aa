#include "ch02_data_parallel/beyond/beyond.hpp"

namespace fivecuts::data_parallel {

//   compute   | backward 3 | backward 2 | backward 1 |        | update |
//   comm                   | reduce 3   | reduce 2   | reduce 1 |
//
// What stays visible is the last reduction and whatever communication takes longer than computing.
double overlapped_step(Replica& replica, const Shard& shard, Communicator& comm,
                       const AllReduce& all_reduce, const AdamOptions& options) {
  zero_gradients(replica);
  std::vector<Pending> reductions;
  const Buffer losses = add_local_gradients(replica, shard, [&](std::size_t layer) {
    const Tensor gradient = replica.gradients[layer];
    reductions.push_back(
        comm.async([all_reduce, gradient](Communicator& lane) { all_reduce(lane, gradient); }));
  });
  for (Pending& reduction : reductions) reduction.wait();
  update(replica, shard.global_rows, options);
  return sum(losses);
}

}  // namespace fivecuts::data_parallel
