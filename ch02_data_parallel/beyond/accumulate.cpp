#include "ch02_data_parallel/beyond/beyond.hpp"

namespace fivecuts::data_parallel {

double accumulated_step(Replica& replica, std::span<const Shard> micro_batches, Communicator& comm,
                        Rung rung, const AllReduce& all_reduce, const AdamOptions& options) {
  zero_gradients(replica);
  double loss = 0;
  Counts samples;
  for (const Shard& shard : micro_batches) {
    loss += add_local_gradients(replica, shard);
    samples.local += shard.rows();
    samples.global += shard.global_rows;
  }
  update(replica, rung(replica, samples, comm, all_reduce), options);
  return loss;
}

}  // namespace fivecuts::data_parallel
