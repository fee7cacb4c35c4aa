#pragma once
// What the program prints.
#include "ch03_allreduce/timing.hpp"

namespace fivecuts::all_reduce {

const char* name_of(Result result);
std::string name_of_type(DType type);  ///< what --type calls it

std::string ladder_table(const std::vector<LadderRow>& ladder);
/// Right results, the same on all ranks, and bytes by formula.
bool ladder_holds(const std::vector<LadderRow>& ladder);

/// In tensors, what the root, another rank at most, and all together send and get.
std::string wire_table(const std::vector<WireRow>& rows, const Setting& setting);
/// "Claims of the notes", and with how many ranks if not with the run's.
std::string claims_title(const Context& context);

/// The figure of the run if it has 2 to 8 ranks with numbers, else an example of four. Collective;
/// rank 0 alone holds the latter.
RingRun figure_of(Context& context, Communicator& comm);
/// Of four ranks, for the comparison with the notes. Rank 0's affair.
RingRun figure_of_four(const Context& context, const RingRun& own);
/// `own` as a table, or `of_four` where that would be too wide, and the notes' beside it.
std::string figure_text(const RingRun& own, const RingRun& of_four);

/// What the clock says, and whether its times are those of the formulas. Rank 0's affair.
struct Times {
  std::vector<Sweep> sweeps;  ///< none under `unit`, where messages take no time
  std::vector<Crossing> crossings;
  std::vector<Terms> terms;
  bool by_formula() const;
};
Times time_all(const Context& context);
std::string times_text(const Times& times, const Context& context);
std::string reproducibility_text(const Reproducibility& found, int ranks);
/// One result where one is promised.
bool is_reproducible(const Reproducibility& found);

}  // namespace fivecuts::all_reduce
