#include "ch03_allreduce/figure3.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "ch03_allreduce/numbers.hpp"
#include "common/observe/table.hpp"

namespace fivecuts::all_reduce {

namespace {

constexpr std::int64_t chunk_elements = 2;

/// Runs `phases` on fresh numbers and looks at what is left.
Column look(Context& context, Communicator& comm, const std::string& name,
            const std::function<void(Tensor)>& phases) {
  const int n = comm.size();
  const Buffer x(context.device, Category::gradient, 1, n * chunk_elements, DType::i64);
  fill(x, [&](std::int64_t) { return std::int64_t{1} << comm.rank(); });
  const Traffic before = context.traffic.measured(comm.name());
  phases(x);
  const Traffic used = context.traffic.measured(comm.name()) - before;
  const std::vector<std::int64_t> left = copy_out_i64(x);
  std::array<std::int64_t, most_ranks_in_figure> mine{};
  for (std::size_t c = 0; c < static_cast<std::size_t>(n); ++c) {
    mine[c] = left[c * chunk_elements];
    require(left[c * chunk_elements + 1] == mine[c], "a chunk holds two different sums");
  }
  Column column{name, {}, comm.gather(used)};
  for (const auto& of_rank : comm.gather(mine)) {
    column.held.emplace_back(of_rank.begin(), of_rank.begin() + n);
  }
  return column;
}

/// From what was used until each column to what its own step used.
void split_into_steps(std::vector<Column>& columns) {
  for (std::size_t k = columns.size(); k-- > 1;) {
    for (std::size_t r = 0; r < columns[k].step.size(); ++r) {
      columns[k].step[r] = columns[k].step[r] - columns[k - 1].step[r];
    }
  }
}

}  // namespace

RingRun watch_ring(Context& context, Communicator& comm) {
  const int n = comm.size();
  require(n >= 2 && n <= most_ranks_in_figure, "the figure shows 2 to 8 ranks");
  Workspace work;
  RingRun run{n, n * chunk_elements * size_of(DType::i64), {}};
  for (int step = 0; step < n; ++step) {
    const std::string name = step == 0 ? "start" : fmt::format("RS-{}", step);
    run.columns.push_back(look(context, comm, name, [&](Tensor x) {
      reduce_scatter(comm, x, Reduction::sum, work, step);
    }));
  }
  for (int step = 1; step < n; ++step) {
    run.columns.push_back(look(context, comm, fmt::format("AG-{}", step), [&](Tensor x) {
      reduce_scatter(comm, x, Reduction::sum, work);
      all_gather(comm, x, step);
    }));
  }
  split_into_steps(run.columns);
  return run;
}

const Column& RingRun::after(const std::string& name) const {
  const auto found = std::ranges::find(columns, name, &Column::name);
  require(found != columns.end(), "the figure has no such column");
  return *found;
}

bool RingRun::one_each() const {
  const std::int64_t chunk = bytes / ranks;
  return std::all_of(columns.begin() + 1, columns.end(), [&](const Column& column) {
    return std::ranges::all_of(column.step, [&](const Traffic& t) {
      return t.messages == 1 && t.sent == chunk && t.received == chunk;
    });
  });
}

int contributions(std::int64_t held) { return std::popcount(static_cast<std::uint64_t>(held)); }

bool is_stale(const Column& column, int rank, int chunk) {
  const auto at = [&](std::size_t r) { return column.held[r][static_cast<std::size_t>(chunk)]; };
  const std::int64_t mine = at(static_cast<std::size_t>(rank));
  for (std::size_t r = 0; r < column.held.size(); ++r) {
    if (at(r) != mine && (at(r) & mine) == mine) return true;
  }
  return false;
}

std::vector<int> live_blocks(const Column& column, int rank) {
  const int n = static_cast<int>(column.held.size());
  std::vector<int> live;
  for (int block = 1; block <= n; ++block) {
    if (!is_stale(column, rank, block % n)) live.push_back(block);
  }
  return live;
}

// --- the notes' figure ---

const std::vector<NotesColumn>& notes_figure() {
  static const std::vector<NotesColumn> columns = {
      {"start", {{1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}}},
      {"RS-1", {{2, 3, 4}, {1, 3, 4}, {1, 2, 4}, {1, 2, 3}}},
      {"RS-2", {{3, 4}, {1, 4}, {1, 2}, {2, 3}}},
      {"RS-3", {{4}, {1}, {2}, {3}}},
      {"AG-1", {{1, 4}, {1, 4}, {1, 2}, {2, 3}}},
      {"AG-2", {{1, 3, 4}, {1, 2, 4}, {1, 2, 3}, {2, 3, 4}}},
      {"AG-3", {{1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}}}};
  return columns;
}

int schedules(const Blocks& before, const Blocks& after) {
  const auto has = [](const std::vector<int>& blocks, int block) {
    return std::ranges::find(blocks, block) != blocks.end();
  };
  std::vector<std::size_t> sender(before.size());  // of each card; all different
  for (std::size_t g = 0; g < sender.size(); ++g) sender[g] = g;
  int possible = 0;
  do {
    bool all = true;
    for (std::size_t g = 0; g < sender.size() && all; ++g) {
      std::vector<int> gained;
      std::ranges::copy_if(after[g], std::back_inserter(gained),
                           [&](int block) { return !has(before[g], block); });
      all = sender[g] != g && gained.size() == 1 && has(before[sender[g]], gained[0]);
    }
    possible += all ? 1 : 0;
  } while (std::ranges::next_permutation(sender).found);
  return possible;
}

int wrong_cells(const RingRun& run, const NotesColumn& notes) {
  const Column& column = run.after(notes.name);
  int wrong = 0;
  for (int g = 0; g < run.ranks; ++g) {
    wrong += notes.cards[static_cast<std::size_t>(g)] != live_blocks(column, g) ? 1 : 0;
  }
  return wrong;
}

// --- for the terminal ---

std::string figure3_table(const RingRun& run) {
  std::vector<std::string> header = {"rank"};
  for (const Column& column : run.columns) header.push_back(column.name);
  Table table(header);
  for (int r = 0; r < run.ranks; ++r) {
    std::vector<std::string> row = {std::to_string(r)};
    for (const Column& column : run.columns) {
      std::string cell;
      for (int block = 1; block <= run.ranks; ++block) {
        const int chunk = block % run.ranks;
        const auto held = column.held[static_cast<std::size_t>(r)][static_cast<std::size_t>(chunk)];
        cell += is_stale(column, r, chunk) ? "  ." : fmt::format("{:3}", held);
      }
      row.push_back(cell);
    }
    table.row(row);
  }
  return table.text();
}

std::string beside_the_notes(const RingRun& run) {
  Table table({"card", "AG-1", "notes", "AG-2", "notes"});
  for (int g = 0; g < run.ranks; ++g) {
    std::vector<std::string> row = {fmt::format("GPU {}", g)};
    for (const NotesColumn& notes : notes_figure()) {
      if (notes.name != "AG-1" && notes.name != "AG-2") continue;
      const std::vector<int> live = live_blocks(run.after(notes.name), g);
      const auto& drawn = notes.cards[static_cast<std::size_t>(g)];
      row.push_back(fmt::format("{}", fmt::join(live, " ")));
      row.push_back(fmt::format("{}{}", fmt::join(drawn, " "), drawn == live ? "" : " !"));
    }
    table.row(row);
  }
  return table.text();
}

}  // namespace fivecuts::all_reduce
