#pragma once
// The exercises' signatures. They are fixed: the checks call them as they stand here. Edit the
// files in exercises/, then run `./course exercises ch01`.
#include <cstdint>
#include <string_view>
#include <vector>

#include "common/model/adam.hpp"
#include "common/model/mlp.hpp"
#include "common/support/exercise.hpp"

namespace fivecuts::exercise {

/// ex1, count the bytes of a recipe (notes, section 01: 2 + 2 + 12).
/// In:  a model of `count` parameters; the types of its parameters and of its gradients, each bf16
///      or f32. It is trained with Adam, whose moments are f32; where the parameters are not f32,
///      Adam keeps a copy of them that is.
/// Out: bytes of each kind of model state on one card.
struct StateBytes {
  std::int64_t parameter = 0, gradient = 0, optimizer = 0;
};
StateBytes state_bytes(std::int64_t count, DType parameter, DType gradient);

/// ex2, name the cut from a placement map (notes, figure 1).
/// In:  `model`; and for each of at least two cards what it holds: blocks W[rows, cols] of layers,
///      and of each block's rows.count * cols.count elements those whose optimizer state it keeps.
///      Layers have no bias. With experts, the layers are a router, its experts, and so on.
/// Out: which of the five cuts this is. Every map is of exactly one of them.
enum class Cut { data, pipeline, tensor, expert, zero };
struct Block {
  std::size_t layer = 0;
  Part rows, cols, optimizer;
};
using Card = std::vector<Block>;
Cut name_the_cut(const ModelShape& model, const std::vector<Card>& cards);

/// ex3, read a ledger and say what to cut first (notes, section 01: the optimizer state, always?).
/// In:  the ledger of a card after a training step, as common/observe/memory_ledger.hpp has it.
/// Out: the category that held the most bytes at its highest. No two held the same.
Category cut_first(const MemoryLedger& ledger);

/// ex4, find the largest model for a card (notes, section 01: 7B on an A100?).
/// In:  the card's memory as --memory takes it ("80GB", "24GiB"; common/support/units.hpp reads
///      it); layers of width x width without bias, in the recipe of ex1; `rows` rows of a batch,
///      for each of which a layer keeps z and y, both of `width` numbers of the parameters' type.
/// Out: how many layers fit, with all of this for each. Nothing else takes memory.
std::int64_t most_layers(std::string_view card, std::int64_t width, DType parameter, DType gradient,
                         std::int64_t rows);

}  // namespace fivecuts::exercise
