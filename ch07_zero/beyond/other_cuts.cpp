#include <algorithm>

#include "ch07_zero/beyond/beyond.hpp"

namespace fivecuts::zero_redundancy {

// --- stage 1, naive ---

void AllReduceAndGather::reduce(std::size_t, Tensor gradient, bool last) {
  require(settings_.stage == 1, "an all-reduce and an all-gather are a way to do stage 1");
  if (last) all_reduce::ring(comm_, gradient, Reduction::sum, work_);
}

// --- a layer has one owner ---

namespace {

Part all_of_some(std::size_t layer, std::int64_t parameters, int ranks, int rank) {
  return {0, static_cast<int>(layer) % ranks == rank ? parameters : 0};
}

}  // namespace

OneOwner::OneOwner(Device& device, const Communicator& comm, const ModelShape& shape,
                   std::uint64_t seed, const Settings& settings)
    : Trainer(device, comm, shape, seed, settings, all_of_some) {
  require(settings.stage == 3, "layers with one owner are a way to do stage 3");
}

void OneOwner::start_gather(std::size_t k) {
  Layer& layer = layers_[k];
  if (layer.gathered != nullptr) return;
  layer.gathered = std::make_shared<Buffer>(device_, Category::parameter, 1,
                                            layer.shape.parameters(), settings_.precision);
  const int owner = owner_of(k);
  if (comm_.rank() == owner) copy(layer.parameters, *layer.gathered);
  layer.arriving = comm_.async([held = layer.gathered, owner](Communicator& lane) {
    for (int r = 0; r < lane.size(); ++r) {
      if (r != owner && lane.rank() == owner) lane.send(r, *held);
      if (r != owner && lane.rank() == r) lane.receive(owner, *held);
    }
  });
}

// Summed along the ring, for its bits, and then brought to the owner.
void OneOwner::reduce(std::size_t k, Tensor gradient, bool) {
  all_reduce::reduce_scatter(comm_, gradient, Reduction::sum, work_);
  const int owner = owner_of(k);
  for (int r = 0; r < comm_.size(); ++r) {
    const auto [first, count] = part_of(gradient.count(), comm_.size(), r);
    const Tensor chunk = gradient.part(first, count);
    if (r != owner && comm_.rank() == owner) comm_.receive(r, chunk);
    if (r != owner && comm_.rank() == r) comm_.send(owner, chunk);
  }
  add(layers_[k].gradients, shard_of(layers_[k], gradient));
}

// --- groups ---

namespace {

Communicator group_of(const Communicator& comm, int group) {
  if (group < 1 || comm.size() % group != 0) {
    fail(fmt::format("{} ranks are not made up of groups of {}; take a group that divides them",
                     comm.size(), group));
  }
  return comm.split("inside", [&](int r) { return r / group; });
}

}  // namespace

HybridSharding::HybridSharding(Device& device, const Communicator& comm, const ModelShape& shape,
                               std::uint64_t seed, const Settings& settings, int group)
    : Trainer(device, group_of(comm, group), shape, seed, settings),
      across_(comm.split("across", [&](int r) { return r % group; })) {
  require(settings.stage >= 2, "groups sum what lies in shards: take stage 2 or 3");
}

// Every micro-batch's gradient inside; across, once, what they come to.
void HybridSharding::reduce(std::size_t k, Tensor gradient, bool last) {
  Trainer::reduce(k, gradient, last);
  if (last) all_reduce::ring(across_, layers_[k].gradients, Reduction::sum, work_across_);
}

// --- parts of one size ---

EqualParts::EqualParts(Device& device, const Communicator& comm, std::int64_t count, DType type)
    : comm_(comm), count_(count) {
  const std::int64_t each = part_of(count, comm.size(), 0).count;  // the longest
  part_ = Buffer(device, Category::workspace, 1, each, type);
  whole_ = Buffer(device, Category::workspace, 1, each * comm.size(), type);
}

Tensor EqualParts::reduce_scatter(Tensor bucket) {
  copy(bucket, whole_.tensor().part(0, count_));
  zero(whole_.tensor().part(count_, padding()));
  comm_.reduce_scatter(whole_, part_);
  const std::int64_t each = part_.tensor().count();
  return part_.tensor().part(0, std::clamp<std::int64_t>(count_ - each * comm_.rank(), 0, each));
}

void EqualParts::all_gather(Tensor bucket) {
  comm_.all_gather(part_, whole_);
  copy(whole_.tensor().part(0, count_), bucket);
}

}  // namespace fivecuts::zero_redundancy
