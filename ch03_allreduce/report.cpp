#include "ch03_allreduce/report.hpp"

#include <algorithm>

#include "common/comm/world.hpp"
#include "common/observe/table.hpp"
#include "common/support/units.hpp"

namespace fivecuts::all_reduce {

const char* name_of(Result result) {
  return result == Result::sum ? "sum" : result == Result::max ? "max" : "average";
}

std::string name_of_type(DType type) {
  return type == DType::f32 ? "fp32" : type == DType::bf16 ? "bf16" : "int64";
}

namespace {

/// Of all ranks.
Traffic together(const std::vector<Traffic>& wire) {
  Traffic sum;
  for (const Traffic& of_rank : wire) sum += of_rank;
  return sum;
}

}  // namespace

std::string ladder_table(const std::vector<LadderRow>& ladder) {
  Table table({"algorithm", "result", "bits", "root sends", "root gets", "last sends", "last gets",
               "all send", "memory", "bytes are"});
  for (const LadderRow& row : ladder) {
    const bool dry = row.distinct < 0;
    const Traffic &first = row.wire.front(), &last = row.wire.back();
    const char* result = dry ? "dry" : row.result.ok ? "golden" : "differs";
    const char* bits = dry ? "dry" : row.distinct == 1 ? "same" : "DIFFER";
    static constexpr const char* kinds[] = {"measured", "read, written", "modelled"};
    const char* right = kinds[static_cast<std::size_t>(row.algorithm->by)];
    table.row({row.algorithm->name, result, bits, std::to_string(first.sent),
               std::to_string(first.received), std::to_string(last.sent),
               std::to_string(last.received), std::to_string(together(row.wire).sent),
               std::to_string(row.work_memory), row.by_formula ? right : "NOT BY FORMULA"});
  }
  return table.text();
}

bool ladder_holds(const std::vector<LadderRow>& ladder) {
  return std::ranges::all_of(ladder, [](const LadderRow& row) {
    return row.result.ok && row.distinct <= 1 && row.by_formula;
  });
}

std::string wire_table(const std::vector<WireRow>& rows, const Setting& s) {
  Table table({"algorithm", "N", "root sends", "gets", "others send", "get", "all send", "get"});
  const double whole = static_cast<double>(s.elements * size_of(s.type));
  for (const WireRow& row : rows) {
    Traffic others;  // the most of each
    for (std::size_t r = 1; r < row.wire.size(); ++r) {
      others.sent = std::max(others.sent, row.wire[r].sent);
      others.received = std::max(others.received, row.wire[r].received);
    }
    std::vector<std::string> cells = {row.algorithm->name, std::to_string(row.ranks)};
    for (const Traffic& of : {row.wire[0], others, together(row.wire)}) {
      for (const std::int64_t bytes : {of.sent, of.received}) {
        cells.push_back(fmt::format("{:.3f}", static_cast<double>(bytes) / whole));
      }
    }
    if (!row.by_formula) cells.back() += " DIFFER";
    table.row(cells);
  }
  return table.text();
}

std::string claims_title(const Context& context) {
  const int n = ranks_of_claims(context);
  if (n == context.size()) return "Claims of the notes";
  return fmt::format("Claims of the notes, with {} ranks: {}", n,
                     context.size() == 1 ? "one has nothing to send"
                                         : fmt::format("{} would take long", context.size()));
}

// --- figure 3 ---

RingRun figure_of(Context& context, Communicator& comm) {
  const int n = comm.size();
  const bool fits = n >= 2 && n <= most_ranks_in_figure;
  if (fits && !context.device.dry()) return watch_ring(context, comm);
  RingRun run = figure_of_four(context, {});
  run.example = fits     ? "a dry run has no numbers"
                : n == 1 ? "one rank has nothing to send"
                         : fmt::format("{} ranks are too many to draw", n);
  return run;
}

RingRun figure_of_four(const Context& context, const RingRun& own) {
  if (own.ranks == 4 || context.rank() > 0) return own;
  return world_results<RingRun>(4, inner_world(context, Device::Kind::cpu),
                                [](Context& inner) { return watch_ring(inner, inner.world); })
      .front();
}

std::string figure_text(const RingRun& own, const RingRun& of_four) {
  const auto& notes = notes_figure();
  const bool wide = own.ranks > 4;
  const RingRun& shown = wide ? of_four : own;
  std::string why = own.example;
  if (wide) why = fmt::format("the run's {} are too wide here, --figure draws them", own.ranks);
  std::string text = fmt::format(
      "Figure 3, from a ring of {} ranks{}: rank r gives 2^r, so the number in a block says whose "
      "data it\nholds; blocks 1 to {}, '.' where the data has been sent on\n{}",
      shown.ranks, why.empty() ? "" : fmt::format(" (an example: {})", why), shown.ranks,
      figure3_table(shown));
  text += fmt::format(
      "In each of the {} steps{} each rank sent one message of {} and received one: {}\n\n",
      own.columns.size() - 1, wide ? fmt::format(" of the {} ranks", own.ranks) : "",
      show_bytes(static_cast<double>(own.bytes / own.ranks)), own.one_each() ? "yes" : "NO");
  int elsewhere = 0, gathered = 0, other_way = 0;
  for (std::size_t k = 0; k < notes.size(); ++k) {
    const bool in_question = notes[k].name == "AG-1" || notes[k].name == "AG-2";
    (in_question ? gathered : elsewhere) += wrong_cells(of_four, notes[k]);
  }
  for (const int step : {1, 2}) {
    const auto column = std::ranges::find(notes, fmt::format("AG-{}", step), &NotesColumn::name);
    other_way += wrong_cells(the_other_way(of_four, step), *column);
  }
  text += fmt::format(
      "Beside the notes, N = 4: start to RS-3 and AG-3 differ in {} cells; AG-1 and AG-2 differ in "
      "{} of 8 ('!'),\nand from an all-gather the other way round in {} of 8\n{}"
      "No ring leaves such columns, with one message from each card in each step:\n  {}\n",
      elsewhere, gathered, other_way, beside_the_notes(of_four),
      fmt::join(why_impossible(), ";\n  "));
  return text;
}

// --- time ---

bool Times::by_formula() const {
  return std::ranges::all_of(sweeps, [](const Sweep& sweep) { return sweep.by_formula; });
}

Times time_all(const Context& context) {
  Times times;
  for (const int ranks : {4, 64}) times.terms.push_back(terms(context, ranks));
  if (context.clock.cluster().unit) return times;  // it takes no time to send
  const int ranks = ranks_of_claims(context);
  for (const Case& c : {on_nodes(context, ranks), on_nodes(context, 64), on_nodes(context, 8, 4),
                        on_nodes(context, 64, 8)}) {
    const bool there =
        std::ranges::find(times.sweeps, layout(c), &Sweep::title) != times.sweeps.end();
    if (!there) times.sweeps.push_back(sweep_sizes(context, c));
  }
  times.sweeps.insert(times.sweeps.begin() + 1, sweep_slow_halves(context, ranks));
  times.crossings = crossings(context, ranks);
  return times;
}

namespace {

std::string sweeps_text(const Times& times, const Context& context) {
  std::string text = fmt::format(
      "Time on the virtual cluster '{}', * the fastest; {}\n", context.clock.cluster().name,
      times.by_formula() ? "the formulas say the same" : "the formulas DIFFER from the clock");
  for (const Sweep& sweep : times.sweeps) {
    text += fmt::format("{}\n{}", sweep.title, times_table(sweep));
  }
  text += fmt::format("Crossing points, {}:\n", times.sweeps.front().title);
  for (const Crossing& crossing : times.crossings) {
    const std::string from = crossing.bytes == 0 ? "for every size"
                             : crossing.bytes
                                 ? "from " + show_bytes(static_cast<double>(*crossing.bytes))
                                 : "for no size";
    text += fmt::format("  {} is faster than {} {}\n", crossing.second->name, crossing.first->name,
                        from);
  }
  return text;
}

}  // namespace

std::string times_text(const Times& times, const Context& context) {
  std::string text =
      times.sweeps.empty()
          ? fmt::format(
                "The virtual cluster '{}' counts slots of computing, and a message takes "
                "none:\nthere are no times to compare; try --cluster h100\n",
                context.clock.cluster().name)
          : sweeps_text(times, context);
  text += fmt::format(
      "\nWhat decides, each by itself. In units of D/B, one tensor over one link:\n"
      "  D/B    all links alike\n"
      "  slow   between two halves of the ranks each rank's own link carries a tenth\n"
      "  cable  the halves share one cable with a tenth: at least, from the bytes that cross it\n"
      "and in units of α, one latency\n{}",
      terms_table(times.terms));
  return text;
}

// --- reproducibility ---

std::string reproducibility_text(const Reproducibility& f, int ranks) {
  return fmt::format(
      "Different results of one sum of real numbers, bit for bit, {} ranks\n"
      "  {} of each algorithm on all ranks, {} in two runs\n"
      "  {} of the {} algorithms\n"
      "  {} of the ring on the whole tensor and in 2, 3, 4 pieces\n"
      "  {} of the ring over 24 summands on 1, 2, 3, 4 ranks\n"
      "  {} on all ranks, where each adds its own numbers first (wrong on purpose)\n",
      ranks, f.between_ranks, f.between_runs, f.between_algorithms, f.algorithms, f.between_buckets,
      f.between_worlds, f.own_order);
}

bool is_reproducible(const Reproducibility& f) {
  return f.between_ranks == 1 && f.between_runs == 1;
}

}  // namespace fivecuts::all_reduce
