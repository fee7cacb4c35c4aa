#pragma once
// A training that outlives its processes, and goes on with other ones.
//
//    state/manifest.json                what is whole: steps, recipe, which file has what
//    state/save-2/rank-0.safetensors    shard 0 of each layer: weights, first and second moment
//                 rank-1.safetensors    shard 1 ...
//
// Save, on 3 ranks. Each rank writes its shard at whatever stage, so that copies are written once:
//
//    rank 0   save-3/rank-0: write, flush, rename -.  all     manifest.json: write, flush,
//    rank 1   save-3/rank-1: write, flush, rename --> are --> rename: now the checkpoint is
//    rank 2   save-3/rank-2: write, flush, rename -'  there   save-3, and save-2 can go
//
// Invariant: at any moment the manifest that lies there names files that are whole on the disk. A
// crash before the last rename leaves save-2 the checkpoint, one after it save-3.
//
// Resume, on 2 ranks: shards are ranges of a layer, so a new shard is a few ranges of old ones.
//
//    saved by   |---- rank 0 ----|---- rank 1 ----|---- rank 2 ----|      a layer
//    read by    |--------- rank 0 --------|--------- rank 1 -------|
//
// Each rank reads the shard that is its own now, 12 bytes a parameter, and at the stages that keep
// more whole, the shards meet as after an update (ch03's all_gather): each byte of each file is
// read once in the job, whatever N and stage were and are.
// Cost: 12 Psi / N bytes written by a rank, and 12 Psi / N read; nothing beyond a layer's shard in
// memory. The same idea in tools: PyTorch's Distributed Checkpoint; Lian et al., Universal
// Checkpointing, arXiv:2406.18820.
#include <functional>

#include "ch07_zero/manifest.hpp"

namespace fivecuts::zero_redundancy {

/// For tests: called with a name between the parts of a save. What it throws is taken for what the
/// system may say there, a full disk.
using Reached = std::function<void(const std::string& part)>;

/// Collective. Throws UsageError, on every rank alike, unless `folder` can take the checkpoints of
/// this run: it is not there yet and its parent is, or it holds none and nothing else either, or
/// it is `resumed`, the one that the run goes on from.
void check_save_folder(const Communicator& comm, const std::filesystem::path& folder,
                       const std::filesystem::path* resumed);

/// Collective. Saves the state after `steps` steps as the checkpoint in `folder`, which all ranks
/// must see, in the place of the one before; creates the folder. Returns the bytes that this rank
/// wrote. If any rank cannot write, every rank throws the same Failure, and the checkpoint before
/// is whole.
std::int64_t save(const Trainer& trainer, const Communicator& comm, const Recipe& recipe,
                  std::int64_t steps, const std::filesystem::path& folder,
                  const Reached& reached = nullptr);

/// Collective. What lies in `folder`. Throws on every rank alike, naming the file: UsageError if
/// there is no checkpoint, or one of another recipe than `run`; Failure if its manifest is damaged.
Manifest read_manifest(const Communicator& comm, const Recipe& run,
                       const std::filesystem::path& folder);

/// What a rank resumed.
struct Resumed {
  std::int64_t steps = 0;    ///< that are done already
  std::int64_t bytes = 0;    ///< read from shards by this rank
  int ranks = 0, stage = 0;  ///< of the run that saved it
};
/// Collective. Gives `trainer` the state in `folder`, in f32 bit for bit what was saved. Throws as
/// read_manifest() does, and a Failure if a byte of a file is missing or changed; then the trainer
/// must not be used any more.
Resumed resume(Trainer& trainer, Communicator& comm, const Recipe& recipe,
               const std::filesystem::path& folder);

/// Collective. Writes the weights in f32 as one safetensors file on rank 0's host: layers.K.weight
/// [in, out] (y = x W + b, so PyTorch's Linear takes its transpose) and layers.K.bias [out].
/// One shard of one layer after the other goes over rank 0: beyond its own state it never holds
/// more. Returns the bytes of the file. Fails on every rank alike.
std::int64_t export_weights(const Trainer& trainer, Communicator& comm,
                            const std::filesystem::path& file);

}  // namespace fivecuts::zero_redundancy
