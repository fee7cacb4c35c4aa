#pragma once
// Dry worlds inside a run: the notes' own sizes, any number of ranks, on a laptop. Rank 0's affair.
#include "ch07_zero/experiments.hpp"
#include "common/comm/world.hpp"

namespace fivecuts::zero_redundancy {

/// The notes' small case for any N: four layers whose shards are equal; Psi = 1,024 for N = 4.
ModelShape small_case(int ranks);

/// What the ranks of a dry world do.
struct World {
  int ranks = 1;
  ModelShape model{};
  Settings settings{};
  std::int64_t micro_batches = 1;
  std::int64_t rows = 1;  ///< of each rank
  std::int64_t cap = MemoryLedger::unlimited;
  std::optional<Cluster> cluster{};
  Make make = make_trainer<>;
};
/// What a step takes, of each rank. Throws OutOfMemory if it does not fit under the cap.
std::vector<StepCost> dry_steps(const World& world);
/// Model state between steps, of the fullest rank; or nothing, if it does not fit under the cap.
std::optional<std::int64_t> dry_state(const World& world);

// --- figure 8 ---

struct Figure8 {
  static constexpr std::array ranks = {1, 2, 4, 8, 16, 32, 64};
  static constexpr std::array caps = {std::int64_t{24'000'000'000}, std::int64_t{80'000'000'000}};
  static constexpr int most_ranks = 64;
  /// [stage][index of N]: bytes of the fullest rank, 7B in bf16.
  std::array<std::array<std::int64_t, ranks.size()>, 4> bytes{};
  /// [stage][cap]: the smallest N that fits, found under that cap; 0: none up to most_ranks.
  /// What lies between steps, and a step of one row, which needs some more.
  std::array<std::array<int, caps.size()>, 4> at_rest_from{}, step_from{};
  /// The ZeRO paper's row (arXiv:1910.02054, figure 1): 7.5B, N = 64, by stage.
  std::array<std::int64_t, 4> paper{};
};
Figure8 figure8();
std::string figure8_text(const Figure8& figure);
std::string figure8_svg(const Figure8& figure);

// --- the wire ---

/// Elements sent by a rank in a step of the small case, in units of (N-1)/N Psi.
struct WireRow {
  std::int64_t micro_batches = 1;
  std::array<double, 4> units{};           ///< by stage
  std::array<std::int64_t, 4> messages{};  ///< of a rank
  std::array<std::int64_t, 4> state{};     ///< bytes at rest
};
std::vector<WireRow> wire_rows(int ranks);
std::string wire_text(const std::vector<WireRow>& rows, int ranks);

// --- which stage is worth its price ---

struct ValueRow {
  static constexpr std::array micro_batches = {1, 4, 8};
  int stage = 0;
  std::int64_t state = 0;                                     ///< bytes at rest, of rank 0
  std::array<std::int64_t, micro_batches.size()> elements{};  ///< that it sends in a step
  /// Another stage takes no more of both, and less of one, with the k-th number of micro-batches.
  bool beaten(const std::vector<ValueRow>& rows, std::size_t k) const;
};
/// Each stage of `world`, a row for each micro-batch.
std::vector<ValueRow> value_rows(World world);
std::string value_text(const std::vector<ValueRow>& rows);

// --- what stage 3 leaks ---

/// What Trainer::weights says of layer 1 (of 0 to 3) after its forward pass at `stage`; empty: it
/// gives them.
std::string weights_outside(int stage);

// --- what fits ---

struct Fit {
  int stage = 0;
  std::string
      verdict;  ///< "fits, 26.25 GB at rest, 28 GB at its peak"; or the sentence of the refusal
};
/// A step of `world` at each stage.
std::vector<Fit> what_fits(World world);

// --- on the clock ---

struct StepTime {
  std::string name;
  double inside = 0, across = 0;  ///< seconds: all ranks on one node; each on a node of its own
};
/// A step of four layers of 10,000 x 10,000 with 512 rows a rank, at each stage; 3 with and without
/// prefetch.
std::vector<StepTime> step_times(int ranks, const Cluster& cluster);
std::string times_text(const std::vector<StepTime>& times, int ranks, const Cluster& cluster);

/// All claims whose home is this chapter. Rank 0's affair.
void measure_claims(const Context& run, const Digits& digits, const Figure8& figure,
                    ClaimRows& rows);

}  // namespace fivecuts::zero_redundancy
