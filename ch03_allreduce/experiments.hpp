#pragma once
// The runs behind the chapter's tables and claims.
#include <functional>

#include "ch03_allreduce/algorithms.hpp"
#include "ch03_allreduce/figure3.hpp"
#include "common/comm/context.hpp"
#include "common/model/compare.hpp"
#include "common/observe/claims.hpp"

namespace fivecuts::all_reduce {

enum class Result { sum, average, max };

/// What the runs are about.
struct Setting {
  std::int64_t elements = 8970;  ///< of the tensor: the gradient of ch02's model
  DType type = DType::f32;
  Result result = Result::sum;
  std::int64_t ranks_per_node = 0;  ///< 0: the cluster's, or the real nodes
};

/// How a world inside the run is made: as the run's own, but for its device, without a cap.
CommonOptions inner_world(const Context& run, Device::Kind device);

/// One all-reduce of all ranks of a dry world of its own.
struct DryRun {
  std::vector<Traffic> traffic;  ///< of each rank
  double seconds = 0;            ///< until the last rank has ended
  std::int64_t all_sent() const;
};
using Body = std::function<void(Communicator&, Tensor, Workspace&)>;
DryRun dry_run(const Context& run, const Case& c, const Cluster& cluster, const Body& body);
DryRun dry_run(const Context& run, const Case& c, const Cluster& cluster,
               const NamedAlgorithm& algorithm);

/// What one algorithm came to on the ranks of the run, the same on every rank.
struct LadderRow {
  const NamedAlgorithm* algorithm;
  Verdict result;             ///< against the sum in double precision
  int distinct;               ///< results, bit for bit; -1 on a dry device, which has none
  std::vector<Traffic> wire;  ///< of each rank
  bool by_formula;            ///< `wire` is what the formula says, on every rank
  std::int64_t work_memory;   ///< bytes, of the rank that keeps most
};
/// Collective. Every algorithm that is possible here, once, on numbers that differ by rank and
/// index.
std::vector<LadderRow> climb(Context& context, Communicator& comm, const Setting& setting);

/// Bytes of every algorithm of messages in dry worlds of other sizes.
struct WireRow {
  const NamedAlgorithm* algorithm;
  int ranks;
  std::vector<Traffic> wire;
  bool by_formula;
};
/// Rank 0's affair.
std::vector<WireRow> wire_of_worlds(const Context& run, const Setting& setting);

/// Which results have the same bits: counted are the different ones.
struct Reproducibility {
  int between_ranks = 0;  ///< of one algorithm; the most of all algorithms
  int between_runs = 0;   ///< likewise, of the same run done twice
  int between_algorithms = 0;
  int algorithms = 0;
  int between_buckets = 0;  ///< the ring on the whole tensor, on 2, 3, 4 pieces of it
  int between_worlds = 0;   ///< the ring over the same 24 summands on 1, 2, 3, 4 ranks
  int own_order = 0;        ///< between ranks, where each adds its own numbers first
};
/// Collective.
Reproducibility reproduce(Context& context, Communicator& comm, const Setting& setting);

/// N of the claims and of the first times: the run's, or 4 where the run has one rank, or more than
/// dry worlds take in a moment.
int ranks_of_claims(const Context& run);
/// Rank 0's affair. All claims whose home is this chapter. `figure`: of a ring of four ranks.
void measure_claims(const Context& run, const Setting& setting, const RingRun& figure,
                    ClaimRows& rows);

}  // namespace fivecuts::all_reduce
