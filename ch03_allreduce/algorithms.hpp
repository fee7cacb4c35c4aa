#pragma once
// All algorithms of the chapter side by side, and what each costs by its formula: the bytes of each
// rank and the time on the clock. The ledger and the clock must say the same.
#include <span>
#include <string>

#include "ch03_allreduce/beyond/beyond.hpp"

namespace fivecuts::all_reduce {

/// One all-reduce as the formulas see it: `count` elements of `type` on each of `ranks` ranks, of
/// which ranks_per_node consecutive ones share a node (0: all do).
struct Case {
  int ranks = 1;
  std::int64_t count = 0;
  DType type = DType::f32;
  std::int64_t ranks_per_node = 0;
};

struct NamedAlgorithm {
  const char* name;
  Algorithm run;
  /// What `rank` sends and receives, and how many messages it sends; exact for any case.
  /// `sent_inter_node` is left out.
  Traffic (*traffic)(const Case&, int rank);
  /// Seconds until the last rank has ended, if all start at once.
  double (*seconds)(const Case&, const Cluster&);
  /// How the numbers come to the others. The library's bytes are its own affair, charged as a ring.
  enum class By { messages, memory, library } by = By::messages;
  bool modelled() const { return by == By::library; }
  bool by_messages() const { return by == By::messages; }
  /// Whether the ranks of `comm` can run it, the same on all.
  bool possible(const Communicator& comm) const {
    return by != By::memory || SharedBuffer::possible(comm);
  }
};
/// The ladder, then what stands in beyond/, then the library.
std::span<const NamedAlgorithm> all_algorithms();
/// Fails for a name that is not in the list.
const NamedAlgorithm& algorithm(const std::string& name);

/// The time of an all-reduce of `count` elements of `type` on the clock of `cluster`: no rank and
/// no tensor is made. Equal to the clock, for any number of ranks, any count and any size of nodes;
/// of `shared`, which several nodes cannot run, it says what it were on one. A closed
/// form where there is one: links alike (a power of two of ranks for tree and halving_doubling), or
/// full nodes and chunks of one size for the ring; elsewhere messages are gone through, N times the
/// number of steps.
double cost(const NamedAlgorithm& algorithm, int ranks, std::int64_t count, DType type,
            const Cluster& cluster);

/// `run` as an argument for a chapter that takes an all-reduce, with a workspace of its own. On one
/// lane: either the caller's or async()'s.
AllReduce with_workspace(Algorithm run);

}  // namespace fivecuts::all_reduce
