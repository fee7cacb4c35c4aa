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

Blocks held_after(const RingRun& run, const std::string& name) {
  Blocks cards;
  for (int g = 0; g < run.ranks; ++g) cards.push_back(live_blocks(run.after(name), g));
  return cards;
}

Blocks the_other_way(const RingRun& run, int step) {
  const Blocks owned = held_after(run, fmt::format("RS-{}", run.ranks - 1));
  Blocks cards = owned;
  for (int g = 0; g < run.ranks; ++g) {
    auto& mine = cards[static_cast<std::size_t>(g)];
    for (int k = 1; k <= step; ++k) {  // from the left neighbour, what that one got from its own
      const auto& came = owned[static_cast<std::size_t>((g + run.ranks - k) % run.ranks)];
      mine.insert(mine.end(), came.begin(), came.end());
    }
    std::ranges::sort(mine);
  }
  return cards;
}

int wrong_cells(const Blocks& left, const NotesColumn& notes) {
  int wrong = 0;
  for (std::size_t g = 0; g < left.size(); ++g) wrong += notes.cards[g] != left[g] ? 1 : 0;
  return wrong;
}

int wrong_cells(const RingRun& run, const NotesColumn& notes) {
  return wrong_cells(held_after(run, notes.name), notes);
}

std::vector<Senders> ways(const Blocks& before, const Blocks& after) {
  const auto has = [](const std::vector<int>& blocks, int block) {
    return std::ranges::find(blocks, block) != blocks.end();
  };
  std::vector<Senders> all = {{}};
  for (std::size_t g = 0; g < before.size(); ++g) {
    std::vector<int> gained;
    std::ranges::copy_if(after[g], std::back_inserter(gained),
                         [&](int block) { return !has(before[g], block); });
    if (gained.size() != 1) return {};
    std::vector<Senders> longer;
    for (const Senders& some : all) {
      for (std::size_t sender = 0; sender < before.size(); ++sender) {
        if (!has(before[sender], gained[0])) continue;
        longer.push_back(some);
        longer.back().push_back(sender);
      }
    }
    all = std::move(longer);
  }
  return all;
}

int schedules(const Blocks& before, const Blocks& after) {
  return static_cast<int>(std::ranges::count_if(ways(before, after), [](Senders senders) {
    std::ranges::sort(senders);
    return std::ranges::adjacent_find(senders) == senders.end();
  }));
}

Overload overload(const Blocks& before, const Blocks& after) {
  const std::vector<Senders> all = ways(before, after);
  const auto idle_in = [&](const Senders& senders) {
    std::vector<std::size_t> idle;
    for (std::size_t g = 0; g < before.size(); ++g) {
      if (std::ranges::find(senders, g) == senders.end()) idle.push_back(g);
    }
    return idle;
  };
  std::size_t fewest = before.size();
  for (const Senders& senders : all) fewest = std::min(fewest, idle_in(senders).size());
  Overload found;
  for (std::size_t g = 0; g < before.size(); ++g) {
    const auto idles = [&](const Senders& senders) {
      const auto idle = idle_in(senders);
      return idle.size() == fewest && std::ranges::find(idle, g) != idle.end();
    };
    const auto sends_twice = [&](const Senders& senders) {
      return std::ranges::count(senders, g) > 1;
    };
    if (!all.empty() && std::ranges::all_of(all, sends_twice)) found.twice.push_back(g);
    if (std::ranges::any_of(all, idles)) found.nothing.push_back(g);
  }
  return found;
}

std::vector<std::string> why_impossible() {
  const auto cards = [](const std::vector<std::size_t>& some, const char* between) {
    std::string text;
    for (const std::size_t g : some)
      text += fmt::format("{}GPU {}", text.empty() ? "" : between, g);
    return text;
  };
  std::vector<std::string> sentences;
  const auto& notes = notes_figure();
  for (std::size_t k = 1; k < notes.size(); ++k) {
    const auto [twice, nothing] = overload(notes[k - 1].cards, notes[k].cards);
    if (twice.empty()) continue;
    sentences.push_back(fmt::format("in {} {} must send twice, and {} nothing", notes[k].name,
                                    cards(twice, " and "), cards(nothing, " or ")));
  }
  return sentences;
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
