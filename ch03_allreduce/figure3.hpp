#pragma once
// The notes' figure 3, from a run: rank r gives 2^r, so that the number in a chunk says whose data
// is in it.
#include <string>
#include <vector>

#include "ch03_allreduce/all_reduce.hpp"
#include "common/comm/context.hpp"

namespace fivecuts::all_reduce {

/// What lies on the ranks after a step.
struct Column {
  std::string name;                             ///< "start", "RS-1", ..., "AG-1", ...
  std::vector<std::vector<std::int64_t>> held;  ///< [rank][chunk]: the sum of 2^r of whom it holds
  std::vector<Traffic> step;                    ///< of each rank, in this step alone
};
struct RingRun {
  int ranks = 0;
  std::int64_t bytes = 0;  ///< of the tensor
  std::vector<Column> columns;
  std::string example{};  ///< why this is no ring of the program's own ranks; "" if it is

  const Column& after(const std::string& name) const;
  std::int64_t whole() const { return (std::int64_t{1} << ranks) - 1; }
  /// In each step each rank sends one message of a chunk, and receives one.
  bool one_each() const;
};
constexpr int most_ranks_in_figure = 8;

/// Collective, on 2 to 8 ranks: the ring, stopped after every step.
RingRun watch_ring(Context& context, Communicator& comm);

/// True if another rank holds a sum that has everything in this one, and more.
bool is_stale(const Column& column, int rank, int chunk);
/// The blocks of a rank that are not, in the notes' numbers 1 to N: block b is chunk b mod N.
std::vector<int> live_blocks(const Column& column, int rank);
/// Ranks whose data are in a number.
int contributions(std::int64_t held);

/// The notes' figure, N = 4: [column][card], the blocks that are drawn.
using Blocks = std::vector<std::vector<int>>;
struct NotesColumn {
  std::string name;
  Blocks cards;
};
const std::vector<NotesColumn>& notes_figure();
/// What each card holds in the run after the column `name`.
Blocks held_after(const RingRun& run, const std::string& name);
/// What each card would hold after AG-`step` if the all-gather went the other way round.
Blocks the_other_way(const RingRun& run, int step);
/// Cards of the notes' column that hold something else than in `left`.
int wrong_cells(const Blocks& left, const NotesColumn& notes);
int wrong_cells(const RingRun& run, const NotesColumn& notes);

/// A way to come from `before` to `after` in one step in which each card receives one block:
/// [card], who sends it. All ways there are.
using Senders = std::vector<std::size_t>;
std::vector<Senders> ways(const Blocks& before, const Blocks& after);
/// Those in which each card also sends one block.
int schedules(const Blocks& before, const Blocks& after);
/// Why there is none: who sends more than once in every way, and who sends nothing in a way that
/// leaves as few idle as possible.
struct Overload {
  std::vector<std::size_t> twice, nothing;
};
Overload overload(const Blocks& before, const Blocks& after);
/// In words, of the notes' columns AG-1 and AG-2: "in AG-1 GPU 1 must send twice and ...".
std::vector<std::string> why_impossible();

/// The run as a table for the terminal; and, of four ranks, the notes' beside it.
std::string figure3_table(const RingRun& run);
std::string beside_the_notes(const RingRun& run);
std::string figure3_svg(const RingRun& run);

}  // namespace fivecuts::all_reduce
