#include "ch07_zero/checkpoint.hpp"

#include <map>

#include "ch07_zero/ranks_and_files.hpp"
#include "ch07_zero/safe_file.hpp"
#include "ch07_zero/save_folder.hpp"

namespace fivecuts::zero_redundancy {
namespace {

namespace fs = std::filesystem;

std::string file_of_rank(int rank) { return fmt::format("rank-{}.safetensors", rank); }

/// A checkpoint is of the notes' cut: of each layer a part for each rank of `comm`.
void require_parts(const Trainer& trainer, const Communicator& comm) {
  for (const Layer& layer : trainer.layers()) {
    const Part part = part_of(layer.shape.parameters(), comm.size(), comm.rank());
    require(layer.shard.first == part.first && layer.shard.count == part.count,
            "checkpoints are for trainers that give each rank its part of each layer");
  }
}

/// This rank's shard of layer k's state: weights, first moment, second moment.
std::array<Tensor, state_names.size()> state_of(const Trainer& trainer, std::size_t k) {
  const Layer& layer = trainer.layers()[k];
  return {trainer.master_shard(k), shard_of(layer, layer.optimizer.m),
          shard_of(layer, layer.optimizer.v)};
}

// --- save ---

/// Writes this rank's shard of every layer, and notes the checksums in `manifest`.
std::int64_t write_shard(const Trainer& trainer, Manifest& manifest, int rank, const fs::path& file,
                         const Reached& reached) {
  SafeFile out(file);
  const std::string header = header_of(manifest, static_cast<std::size_t>(rank));
  out.write(std::as_bytes(std::span(header)));
  std::vector<Piece>& pieces = manifest.files[static_cast<std::size_t>(rank)].pieces;
  for (std::size_t k = 0; k < pieces.size(); ++k) {
    const auto state = state_of(trainer, k);
    for (std::size_t s = 0; s < state.size(); ++s) {
      const HostView view(state[s]);
      out.write(view.bytes());
      pieces[k].sums[s] = checksum(pieces[k].part.first, view.values());
    }
    reached("layer written");
  }
  out.commit();
  return out.bytes();
}

/// Which rank has which part of which layer, without checksums.
Manifest manifest_of(const Trainer& trainer, const Recipe& recipe, std::int64_t steps, int ranks) {
  Manifest manifest{recipe, steps, trainer.settings().stage, ""};
  for (int r = 0; r < ranks; ++r) {
    ShardFile file{file_of_rank(r), {}};
    for (const Layer& layer : trainer.layers()) {
      file.pieces.push_back({part_of(layer.shape.parameters(), ranks, r), {}});
    }
    manifest.files.push_back(file);
  }
  return manifest;
}

void write_manifest(const Manifest& manifest, const fs::path& folder) {
  sync_folder(folder);  // the name of the save is on the disk before anything names it
  SafeFile out(folder / manifest_name);
  const std::string text = manifest_text(manifest);
  out.write(std::as_bytes(std::span(text)));
  out.commit();
}

}  // namespace

void check_save_folder(const Communicator& comm, const fs::path& folder, const fs::path* resumed) {
  by_rank_0(comm, [&] {
    refuse_other_things(folder);
    if (!fs::exists(folder / manifest_name)) return std::string();
    if (resumed != nullptr && fs::equivalent(folder, *resumed)) return std::string();
    throw UsageError(
        fmt::format("'{0}' holds the checkpoint of a run already; go on from it with "
                    "--resume {0} --save {0}, or give another folder",
                    folder.string()));
  });
}

std::int64_t save(const Trainer& trainer, const Communicator& comm, const Recipe& recipe,
                  std::int64_t steps, const fs::path& folder, const Reached& hook) {
  require_parts(trainer, comm);
  const Reached reached = hook ? hook : [](const std::string&) {};
  Manifest manifest = manifest_of(trainer, recipe, steps, comm.size());
  manifest.folder = by_rank_0(comm, [&] { return next_save(folder); });
  std::int64_t written = 0;
  const auto pieces_of_ranks = all_or_none(comm, [&] {
    reached("folder made");
    const fs::path file = folder / manifest.folder / file_of_rank(comm.rank());
    written = write_shard(trainer, manifest, comm.rank(), file, reached);
    reached("shard written");
    return packed(manifest.files[static_cast<std::size_t>(comm.rank())].pieces);
  });
  by_rank_0(comm, [&] {
    for (std::size_t r = 0; r < pieces_of_ranks.size(); ++r) {
      manifest.files[r].pieces = unpacked<Piece>(pieces_of_ranks[r]);
    }
    reached("all shards written");
    write_manifest(manifest, folder);
    reached("manifest written");
    remove_other_saves(folder, manifest.folder);
    reached("others removed");
    return std::string();
  });
  return written;
}

// --- resume ---

namespace {

/// What a rank has read of one piece: its share of the checksum in the manifest.
struct Share {
  std::uint64_t file = 0, layer = 0, state = 0, sum = 0;
};

std::string manifest_in(const fs::path& folder) {
  const fs::path file = folder / manifest_name;
  if (std::error_code unreachable; !fs::exists(file, unreachable)) {
    throw UsageError(
        fmt::format("there is no checkpoint in '{}': no file '{}'; a run with --save "
                    "makes one",
                    folder.string(), file.string()));
  }
  RangeReader in(file);
  std::string text(static_cast<std::size_t>(in.size()), '\0');
  in.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

/// One file of a checkpoint, and what a rank takes from it.
class ShardReader {
 public:
  ShardReader(const Manifest& manifest, std::size_t f, const fs::path& folder)
      : manifest_(manifest),
        f_(f),
        path_(folder / manifest.folder / manifest.files[f].name),
        header_(header_of(manifest, f)),
        in_(path_) {
    if (const std::int64_t have = in_.size(), want = bytes_of(manifest, f); have != want) {
      throw FileError(
          fmt::format("'{}' has {} bytes and must have {}: it was cut short, or changed",
                      path_.string(), have, want));
    }
  }

  void check_header() {
    std::string text(header_.size(), '\0');
    in_.read(0, std::as_writable_bytes(std::span(text)));
    if (text == header_) return;
    throw FileError(
        fmt::format("'{}' is not the file that its manifest speaks of: its header is "
                    "another one",
                    path_.string()));
  }

  /// Reads what `to`, the shard `mine` of state s of layer k, has in common with this file.
  void read(std::size_t k, std::size_t s, Part mine, Tensor to, std::vector<Share>& shares) {
    const Part here = manifest_.files[f_].pieces[k].part;
    const std::int64_t first = std::max(here.first, mine.first);
    const std::int64_t end = std::min(here.first + here.count, mine.first + mine.count);
    if (first >= end) return;
    std::vector<float> values(static_cast<std::size_t>(end - first));
    const std::int64_t skipped = (first - here.first) * static_cast<std::int64_t>(sizeof(float));
    in_.read(
        static_cast<std::int64_t>(header_.size()) + offset_of(manifest_.files[f_], k, s) + skipped,
        std::as_writable_bytes(std::span(values)));
    copy_in(values, to.part(first - mine.first, end - first));
    shares.push_back({f_, k, s, checksum(first, values)});
  }

  std::int64_t bytes() const { return in_.bytes(); }

 private:
  const Manifest& manifest_;
  std::size_t f_;
  fs::path path_;
  std::string header_;
  RangeReader in_;
};

bool any_in_common(const std::vector<Piece>& pieces, const std::vector<Layer>& layers) {
  for (std::size_t k = 0; k < layers.size(); ++k) {
    const Part a = pieces[k].part, b = layers[k].shard;
    if (std::max(a.first, b.first) < std::min(a.first + a.count, b.first + b.count)) return true;
  }
  return false;
}

/// Reads this rank's shards. Every header is looked at by one rank, a file without numbers too.
std::vector<Share> read_shards(const Trainer& trainer, const Communicator& comm,
                               const Manifest& manifest, const fs::path& folder,
                               std::int64_t& bytes) {
  std::vector<Share> shares;
  const std::vector<Layer>& layers = trainer.layers();
  for (std::size_t f = 0; f < manifest.files.size(); ++f) {
    const bool checks = static_cast<int>(f) % comm.size() == comm.rank();
    if (!checks && !any_in_common(manifest.files[f].pieces, layers)) continue;
    ShardReader in(manifest, f, folder);
    if (checks) in.check_header();
    for (std::size_t k = 0; k < layers.size(); ++k) {
      const auto state = state_of(trainer, k);
      for (std::size_t s = 0; s < state.size(); ++s) {
        in.read(k, s, layers[k].shard, state[s], shares);
      }
    }
    bytes += in.bytes();
  }
  return shares;
}

/// The shares of all ranks must add up to what was saved.
void require_sums(const Manifest& manifest, const fs::path& folder,
                  const std::vector<std::string>& shares_of_ranks) {
  std::map<std::array<std::uint64_t, 3>, std::uint64_t> sums;
  for (const std::string& of_rank : shares_of_ranks) {
    for (const Share& s : unpacked<Share>(of_rank)) sums[{s.file, s.layer, s.state}] += s.sum;
  }
  for (std::size_t f = 0; f < manifest.files.size(); ++f) {
    for (std::size_t k = 0; k < manifest.recipe.model.size(); ++k) {
      for (std::size_t s = 0; s < state_names.size(); ++s) {
        if (sums[{f, k, s}] == manifest.files[f].pieces[k].sums[s]) continue;
        fail(fmt::format("'{}' is damaged: layers.{}.{} has other bits than were saved",
                         (folder / manifest.folder / manifest.files[f].name).string(), k,
                         state_names[s]));
      }
    }
  }
}

/// Makes the rest of the layer what its shards are, as an update does.
void spread(Layer& layer, Tensor master, const Settings& settings, Communicator& comm) {
  if (settings.precision == DType::bf16) round_to_bf16(master, shard_of(layer, layer.parameters));
  if (settings.stage <= 2) all_reduce::all_gather(comm, layer.parameters);
  if (settings.stage > 0) return;
  all_reduce::all_gather(comm, layer.optimizer.m);
  all_reduce::all_gather(comm, layer.optimizer.v);
  if (settings.precision == DType::bf16) all_reduce::all_gather(comm, layer.optimizer.master);
}

}  // namespace

Manifest read_manifest(const Communicator& comm, const Recipe& run, const fs::path& folder) {
  const std::string text = by_rank_0(comm, [&] { return manifest_in(folder); });
  Manifest manifest;
  all_or_none(comm, [&] {
    manifest = parse_manifest(text, folder / manifest_name);
    require_same(manifest.recipe, run, folder / manifest_name);
    return std::string();
  });
  return manifest;
}

Resumed resume(Trainer& trainer, Communicator& comm, const Recipe& recipe, const fs::path& folder) {
  require_parts(trainer, comm);
  const Manifest manifest = read_manifest(comm, recipe, folder);
  Resumed resumed{manifest.steps, 0, static_cast<int>(manifest.files.size()), manifest.stage};
  const auto shares = all_or_none(
      comm, [&] { return packed(read_shards(trainer, comm, manifest, folder, resumed.bytes)); });
  require_sums(manifest, folder, shares);
  for (std::size_t k = 0; k < trainer.layers().size(); ++k) {
    Layer& layer = trainer.layers()[k];
    layer.optimizer.step = manifest.steps;
    spread(layer, trainer.master_shard(k), trainer.settings(), comm);
  }
  return resumed;
}

}  // namespace fivecuts::zero_redundancy
