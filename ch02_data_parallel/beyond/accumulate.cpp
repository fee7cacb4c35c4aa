#include "ch02_data_parallel/beyond/beyond.hpp"

namespace fivecuts::data_parallel {

double accumulated_step(Replica& replica, std::span<const Shard> micro_batches, Communicator& comm,
                        Rung rung, const AllReduce& all_reduce, const AdamOptions& options) {
  zero_gradients(replica);
  std::vector<Buffer> losses;  // of each micro-batch
  Counts samples;
  for (const Shard& shard : micro_batches) {
    losses.push_back(add_local_gradients(replica, shard));
    samples.local += shard.rows();
    samples.global += shard.global_rows;
  }
  update(replica, rung(replica, samples, comm, all_reduce), options);
  double loss = 0;
  for (const Buffer& of_rows : losses) loss += sum(of_rows);
  return loss;
}

}  // namespace fivecuts::data_parallel
