#include "ch01_overview/placement.hpp"

namespace fivecuts::overview {
namespace {

/// Block W[rows, cols] of layer `k`, with all of its state.
Holding block(const ModelShape& model, std::size_t k, Part rows, Part cols) {
  Holding holding{k, rows, cols, {}, {}, {}};
  const Part all{0, layer_of(model, holding).parameters()};
  holding.parameters = holding.gradients = holding.optimizer = all;
  return holding;
}

Holding whole(const ModelShape& model, std::size_t k) {
  return block(model, k, {0, model[k].in}, {0, model[k].out});
}

bool contains(Part part, std::int64_t index) {
  return index >= part.first && index < part.first + part.count;
}

}  // namespace

// --- the cuts ---

Placement data_parallel(const ModelShape& model, int ranks, int rank) {
  return zero_sharding(0, model, ranks, rank);
}

// 70 layers on 4 ranks: 0..17, 18..35, 36..52, 53..69. The longer stages come first, and no layer
// is lost or held twice.
Placement pipeline_parallel(const ModelShape& model, int ranks, int rank) {
  const Part stage = part_of(static_cast<std::int64_t>(model.size()), ranks, rank);
  Placement placement;
  for (std::int64_t k = stage.first; k < stage.first + stage.count; ++k) {
    placement.push_back(whole(model, static_cast<std::size_t>(k)));
  }
  return placement;
}

// A pair on 2 ranks, x [b, i] with all columns on both:
//
//            W0 [i, h]              W1 [h, o]
//        +-------+-------+       +---------------+
//        |       |       |       |    rank 0     |     rank 0: z0 = x W0[:, 0], z0 W1[0, :]
//        | rank 0| rank 1|       +---------------+     rank 1: z1 = x W0[:, 1], z1 W1[1, :]
//        |       |       |       |    rank 1     |     y = the sum of both: the only message
//        +-------+-------+       +---------------+
//
// A bias has a column's number: cut with W0's columns, whole on every rank beside W1's rows.
Placement tensor_parallel(const ModelShape& model, int ranks, int rank) {
  Placement placement;
  for (std::size_t k = 0; k < model.size(); ++k) {
    const Part rows{0, model[k].in}, cols{0, model[k].out};
    const bool first_of_pair = k % 2 == 0;
    placement.push_back(first_of_pair ? block(model, k, rows, part_of(cols.count, ranks, rank))
                                      : block(model, k, part_of(rows.count, ranks, rank), cols));
  }
  return placement;
}

Placement expert_parallel(const ModelShape& moe, int experts, int ranks, int rank) {
  require(experts > 0 && experts % ranks == 0, "expert parallelism needs as many experts each");
  const Part mine = part_of(experts, ranks, rank);
  Placement placement;
  for (std::size_t k = 0; k < moe.size(); ++k) {
    const auto expert = static_cast<std::int64_t>(k) % (experts + 1) - 1;  // -1: the router
    if (expert < 0 || contains(mine, expert)) placement.push_back(whole(moe, k));
  }
  return placement;
}

// Neither rows nor columns: a bucket of 10 elements on 4 ranks is cut 3, 3, 2, 2, whatever they
// stand for. So every rank computes with whole layers, whose elements it has to gather first where
// it does not hold them (stage 3).
Placement zero_sharding(int stage, const ModelShape& model, int ranks, int rank) {
  require(stage >= 0 && stage <= 3, "ZeRO has the stages 0 to 3");
  Placement placement;
  for (std::size_t k = 0; k < model.size(); ++k) {
    Holding holding = whole(model, k);
    const Part mine = part_of(model[k].parameters(), ranks, rank);
    if (stage >= 1) holding.optimizer = mine;
    if (stage >= 2) holding.gradients = mine;
    if (stage >= 3) holding.parameters = mine;
    placement.push_back(holding);
  }
  return placement;
}

Part batch_rows(Cut cut, std::int64_t batch, int ranks, int rank) {
  if (cut == Cut::pipeline || cut == Cut::tensor) return {0, batch};
  return part_of(batch, ranks, rank);
}

// --- what they have in common ---

LayerShape layer_of(const ModelShape& model, const Holding& holding) {
  LayerShape shape = model[holding.layer];
  shape.in = holding.rows.count;
  shape.out = holding.cols.count;
  return shape;
}

ModelShape moe_of(const ModelShape& model, int experts) {
  ModelShape moe;
  for (const LayerShape& layer : model) {
    moe.push_back({layer.in, experts, false, false, false});
    for (int e = 0; e < experts; ++e) {
      moe.push_back({layer.in, part_of(layer.out, experts, e).count, layer.bias, layer.gelu});
    }
  }
  return moe;
}

ModelShape cut_model(Cut cut, const ModelShape& model, int experts) {
  return cut == Cut::expert ? moe_of(model, experts) : model;
}

Placement place(Cut cut, const ModelShape& model, int experts, int ranks, int rank) {
  switch (cut) {
    case Cut::data:
      return data_parallel(model, ranks, rank);
    case Cut::pipeline:
      return pipeline_parallel(model, ranks, rank);
    case Cut::tensor:
      return tensor_parallel(model, ranks, rank);
    case Cut::expert:
      return expert_parallel(model, experts, ranks, rank);
    case Cut::zero1:
      return zero_sharding(1, model, ranks, rank);
    case Cut::zero2:
      return zero_sharding(2, model, ranks, rank);
    case Cut::zero3:
      return zero_sharding(3, model, ranks, rank);
  }
  fail("there is no such cut");
}

std::span<const CutFacts> all_cuts() {
  static constexpr CutFacts facts[] = {
      {Cut::data, "data", "the batch, by rows", "the gradient summed over the ranks", "ch02, ch03"},
      {Cut::pipeline, "pipeline", "between layers", "stages wait: a bubble", "ch04"},
      {Cut::tensor, "tensor", "inside a layer", "activations summed in every layer", "ch05"},
      {Cut::expert, "expert", "whole experts", "tokens sent to experts and back", "ch06"},
      {Cut::zero1, "zero1", "optimizer state", "no more bytes than data", "ch07"},
      {Cut::zero2, "zero2", "gradients too", "no more bytes than data", "ch07"},
      {Cut::zero3, "zero3", "parameters too", "half as many bytes again as data", "ch07"}};
  return facts;
}

const char* name_of(Cut cut) { return all_cuts()[static_cast<std::size_t>(cut)].name; }

}  // namespace fivecuts::overview
