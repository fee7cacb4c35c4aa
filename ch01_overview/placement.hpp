#pragma once
// The five cuts as pure functions: which rank holds which slice of which layer (the notes' figure
// 1). Nothing is allocated or sent here; later chapters hold, send and compute with what these
// functions name.
//
//               rank 0           rank 1           rank 2           rank 3
//   data        W0 W1 W2 W3      W0 W1 W2 W3      W0 W1 W2 W3      W0 W1 W2 W3     the batch is cut
//   pipeline    W0               W1               W2               W3             between layers
//   tensor      W0[:, 0]         W0[:, 1]         W0[:, 2]         W0[:, 3]       inside a layer:
//               W1[0, :] ...     W1[1, :] ...     W1[2, :] ...     W1[3, :] ...   columns, rows
//   expert      router, E0 E1    router, E2 E3    router, E4 E5    router, E6 E7  whole experts
//   zero        flat W0 [0] ...  flat W0 [1] ...  flat W0 [2] ...  flat W0 [3]    state, anywhere
//
// Invariant: over the ranks, each element of each layer is held exactly once; N times where a cut
// copies it (data: everything, expert: the router, zero below stage 3: what that stage leaves, and
// tensor: a bias after a row-cut weight).
// Bytes of model state on a rank, for Psi parameters of 16 bytes (parameter 2, gradient 2,
// optimizer 12), N = 4, Psi = 7e9:
//
//   data                      16 Psi               112 GB
//   pipeline, tensor, expert  16 Psi / N            28 GB  (on average; and N routers)
//   zero 1                     4 Psi + 12 Psi / N   49 GB
//   zero 2                     2 Psi + 14 Psi / N   38.5 GB
//   zero 3                    16 Psi / N            28 GB
#include <span>
#include <string_view>
#include <vector>

#include "common/model/mlp.hpp"

namespace fivecuts::overview {

enum class Cut { data, pipeline, tensor, expert, zero1, zero2, zero3 };

/// What to say of a cut in a line.
struct CutFacts {
  Cut cut;
  const char *name, *what, *price, *shown_in;
};
std::span<const CutFacts> all_cuts();
const char* name_of(Cut cut);

/// What a rank holds of one layer: the block W[rows, cols] of its weight [in, out], with that
/// block's columns of the bias; and of the block's flat bucket (layer_of gives its shape) the
/// elements of each kind of state. Only zero keeps fewer than all of those.
struct Holding {
  std::size_t layer = 0;                  ///< its number in the whole model
  Part rows, cols;                        ///< of W
  Part parameters, gradients, optimizer;  ///< elements of the block's flat bucket
};
using Placement = std::vector<Holding>;  ///< of one rank, in the order of the layers

/// The block as a layer of its own: its buckets have layer_of(...).parameters() elements.
LayerShape layer_of(const ModelShape& model, const Holding& holding);

// Each takes the whole model's shape, the number of ranks N and a rank of 0 .. N - 1, and gives
// that rank's slices; any N >= 1, also one that divides nothing: parts are as part_of cuts them,
// some empty. Wrong ranks fail.

/// Everything, whatever the rank: what is cut is the batch (see batch_rows).
Placement data_parallel(const ModelShape& model, int ranks, int rank);

/// A contiguous run of whole layers, a stage (GPipe, arXiv:1811.06965, section 2.3).
Placement pipeline_parallel(const ModelShape& model, int ranks, int rank);

/// A slice of every layer: the columns of the first of a pair, the rows of the second, so that the
/// first's outputs are the second's inputs and stay where they are (Megatron-LM, arXiv:1909.08053,
/// section 3).
Placement tensor_parallel(const ModelShape& model, int ranks, int rank);

/// Whole experts, E / N on each rank, and every router. `moe` is laid out as moe_of does. Fails
/// unless N divides E (GShard, arXiv:2006.16668, section 2.2).
Placement expert_parallel(const ModelShape& moe, int experts, int ranks, int rank);

/// Contiguous elements of each layer's flat bucket, wherever they lie in it: of the optimizer state
/// (stage 1), of the gradient too (2), of the parameters too (3). Stage 0 is data_parallel (ZeRO,
/// arXiv:1910.02054, section 5).
Placement zero_sharding(int stage, const ModelShape& model, int ranks, int rank);

/// Layer k of `model` as a mixture of `experts` experts, router first: layers k (E + 1) ..
/// k (E + 1) + E. Expert e gets part e of layer k's columns, so the experts together are as large
/// as the layer; the router is [in, E].
ModelShape moe_of(const ModelShape& model, int experts);

/// Any cut of `model`; with Cut::expert of moe_of(model, experts), which `cut_model` gives.
ModelShape cut_model(Cut cut, const ModelShape& model, int experts);
Placement place(Cut cut, const ModelShape& cut_model, int experts, int ranks, int rank);

/// The rows of a global batch that a rank computes: its part where replicas share the work, all of
/// it where ranks share a model.
Part batch_rows(Cut cut, std::int64_t batch, int ranks, int rank);

}  // namespace fivecuts::overview
