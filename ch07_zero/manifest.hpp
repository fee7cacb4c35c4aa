#pragma once
// What a checkpoint says of itself: manifest.json, the file that makes a folder of shards one.
#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "ch07_zero/zero.hpp"

namespace fivecuts::zero_redundancy {

/// What decides which weights a training comes to, up to rounding; it must stay the same when the
/// training goes on. What decides only who holds or computes what may change: the number of ranks,
/// the stage, prefetch, micro-batches, the device.
struct Recipe {
  ModelShape model;
  DType precision = DType::f32;
  std::int64_t seed = 0, batch = 0;
  double learning_rate = 0, clip = 0;
};
/// Throws UsageError that names `file` and the flag if the two differ.
void require_same(const Recipe& saved, const Recipe& run, const std::filesystem::path& file);

/// The state of a parameter, as it lies in a file: all in f32. In bf16 the weights are the master
/// copy; the 2-byte parameters are those, rounded, and need not be kept.
inline constexpr std::array<const char*, 3> state_names = {"weights", "first_moment",
                                                           "second_moment"};
using Checksums = std::array<std::uint64_t, state_names.size()>;

/// Elements [part.first, part.first + part.count) of one layer, in one file.
struct Piece {
  Part part;
  Checksums sums{};
};

/// A file of one rank: for each layer its weights, then its moments, a piece of each.
struct ShardFile {
  std::string name;
  std::vector<Piece> pieces;  ///< of each layer
};

struct Manifest {
  Recipe recipe;
  std::int64_t steps = 0;  ///< behind it; with seed and batch that is the position in the data
  int stage = 0;           ///< of the run that saved it
  std::string folder;      ///< of the files, beside the manifest
  std::vector<ShardFile> files{};  ///< of each rank of that run
};

std::string manifest_text(const Manifest& manifest);
/// Throws FileError that names `file`, where the text comes from, if it is not such a text, or if a
/// single byte of it was changed.
Manifest parse_manifest(const std::string& text, const std::filesystem::path& file);

/// The header of file `f`: any reader can make it again from the manifest, and compare.
std::string header_of(const Manifest& manifest, std::size_t f);
std::int64_t bytes_of(const Manifest& manifest, std::size_t f);  ///< of the whole file
/// Where in file `f`, after its header, layer `k`'s piece of state `s` begins.
std::int64_t offset_of(const ShardFile& file, std::size_t k, std::size_t s);

/// A sum over elements, those at `first` and after it in their layer, of a mixture of position and
/// bits: any changed bit changes it, and whoever read only a range has its share of it.
std::uint64_t checksum(std::int64_t first, std::span<const float> values);

}  // namespace fivecuts::zero_redundancy
