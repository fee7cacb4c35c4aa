#pragma once
// The trainers of beyond/ beside those of the notes, in dry worlds. Rank 0's affair.
#include "ch07_zero/beyond/beyond.hpp"
#include "ch07_zero/worlds.hpp"

namespace fivecuts::zero_redundancy {

/// HybridSharding in two groups; in one rank each where the ranks are odd in number.
std::unique_ptr<Trainer> make_two_groups(Device& device, const Communicator& comm,
                                         const ModelShape& shape, std::uint64_t seed,
                                         const Settings& settings);

struct BeyondRow {
  std::string name;
  int stage = 0;
  Make make{};
  bool other_order = false;       ///< its sums have another order than stage 0's
  std::vector<StepCost> ranks{};  ///< of a step of six layers of 10,000 x 10,000 in bf16, 512 rows
                                  ///< a rank, on two nodes
  int states = 0;                 ///< different ones among the ranks after training on the digits
  bool same_bits = false;         ///< as stage 0
  double apart = 0;               ///< the largest difference of a weight from stage 0's

  bool agrees() const;
};
/// On `ranks` ranks, an even number.
std::vector<BeyondRow> beyond_rows(int ranks, Cluster cluster, const Digits& digits);
std::string beyond_text(const std::vector<BeyondRow>& rows, const Cluster& cluster);

/// What EqualParts fills up buckets with, in elements, as the ledgers find it.
struct Padding {
  std::int64_t held = 0;  ///< by each rank, for all buckets
  std::int64_t sent = 0;  ///< by all ranks in one collective for each bucket: a library's, modelled
  bool operator==(const Padding&) const = default;
};
Padding padding_of(const std::vector<std::int64_t>& buckets, int ranks);

/// The same memory by the rules of other tools: T5-3B on 8 GPUs, 2,851 M parameters in layers of
/// 32 M at most.
struct Convention {
  std::string name, formula;
  double by_formula = 0;    ///< bytes a GPU
  std::string measured_as;  ///< what this program calls it
  std::int64_t measured = 0;
};
std::vector<Convention> conventions();
std::string conventions_text(const std::vector<Convention>& all);

}  // namespace fivecuts::zero_redundancy
