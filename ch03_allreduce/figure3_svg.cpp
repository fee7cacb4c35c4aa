// The notes' figure 3 as a picture. A block is as dark as it is complete; a stale one is hatched.
#include <algorithm>

#include "ch03_allreduce/figure3.hpp"
#include "common/observe/svg.hpp"
#include "common/support/units.hpp"

namespace fivecuts::all_reduce {
namespace {

constexpr double block_width = 30, block_height = 26, gap = 18, row_gap = 12, names = 56;

/// One colour for raw data, one for partial sums, one for what is whole.
std::string fill_of(const RingRun& run, std::int64_t held) {
  if (held == run.whole()) return Svg::fill(4);
  return Svg::fill(contributions(held) == 1 ? 5 : 2);
}

std::string whose(std::int64_t held) {
  std::string ranks;
  for (int r = 0; r < most_ranks_in_figure; ++r) {
    if ((held >> r & 1) != 0) ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", r);
  }
  return ranks;
}

void card(Svg& svg, const RingRun& run, const Column& column, int rank, double x, double y) {
  for (int block = 1; block <= run.ranks; ++block) {
    const int chunk = block % run.ranks;
    const auto held = column.held[static_cast<std::size_t>(rank)][static_cast<std::size_t>(chunk)];
    const bool stale = is_stale(column, rank, chunk);
    const Box box{x + (block - 1) * block_width, y, block_width, block_height};
    svg.begin_group(fmt::format("{}, rank {}, block {}: from rank {}{}", column.name, rank, block,
                                whose(held), stale ? " (stale: it was sent on)" : ""));
    if (stale) {
      svg.hatched_box(box, fill_of(run, held));
    } else {
      svg.box(box, fill_of(run, held));
      svg.label(box, std::to_string(held), 12);
    }
    svg.end_group();
  }
}

void legend(Svg& svg, const RingRun& run, double y) {
  double x = 0;
  const auto entry = [&](const std::string& fill, const std::string& text, bool stale) {
    const Box box{x, y - 11, 14, 14};
    if (stale) {
      svg.hatched_box(box, fill);
    } else {
      svg.box(box, fill);
    }
    svg.text(x + 20, y, text, {12});
    x += 36 + text_width(text, 12);
  };
  entry(fill_of(run, 1), "data of one rank", false);
  entry(Svg::fill(2), "sum of some", false);
  entry(fill_of(run, run.whole()), "sum of all", false);
  entry(fill_of(run, 1), "sent on: stale", true);
}

/// The columns that the notes draw otherwise, and why they cannot be. `x`, `y`: of the first card.
void as_the_notes_draw(Svg& svg, const RingRun& run, double x, double y) {
  for (const NotesColumn& notes : notes_figure()) {
    if (wrong_cells(run, notes) == 0) continue;
    svg.text(x, y - 8, notes.name + " in the notes", {12, Svg::Align::left, "ink", true});
    for (int r = 0; r < run.ranks; ++r) {
      const std::vector<int> live = live_blocks(run.after(notes.name), r);
      for (const int block : notes.cards[static_cast<std::size_t>(r)]) {
        const bool there = std::ranges::find(live, block) != live.end();
        const Box box{x + (block - 1) * block_width, y + r * (block_height + row_gap), block_width,
                      block_height};
        svg.box(box, there ? fill_of(run, run.whole()) : Svg::fill(1));
        if (!there) svg.label(box, "!", 12);
      }
    }
    x += run.ranks * block_width + gap;
  }
  std::vector<std::string> lines = {"! : the run has no such block there",
                                    "no ring leaves such columns:"};
  for (const std::string& sentence : why_impossible()) lines.push_back(sentence);
  for (const std::string& line : lines) {
    svg.text(x, y + block_height / 2 + 4, line, {12, Svg::Align::left, "faint"});
    y += 18;
  }
}

}  // namespace

std::string figure3_svg(const RingRun& run) {
  Svg svg;
  const std::string title =
      fmt::format("A ring all-reduce of {} ranks, from {}", run.ranks,
                  run.example.empty() ? "a run" : fmt::format("an example: {}", run.example));
  svg.text(0, 0, title, {15, Svg::Align::left, "ink", true});
  legend(svg, run, 26);
  svg.text(0, 46,
           fmt::format("rank r gives 2^r in each of its {} blocks; in every step each rank sends "
                       "one block of {} to the left and receives one",
                       run.ranks, show_bytes(static_cast<double>(run.bytes / run.ranks))),
           {12, Svg::Align::left, "faint"});
  const double column_width = run.ranks * block_width + gap;
  const int columns_a_line = run.ranks;  // a line for each phase
  for (std::size_t k = 0; k < run.columns.size(); ++k) {
    const int line = static_cast<int>(k) / columns_a_line;
    const double x =
        names + static_cast<double>(static_cast<int>(k) % columns_a_line) * column_width;
    const double top = 84 + line * (run.ranks * (block_height + row_gap) + 44);
    svg.text(x, top - 8, run.columns[k].name, {12, Svg::Align::left, "ink", true});
    for (int r = 0; r < run.ranks; ++r) {
      const double y = top + r * (block_height + row_gap);
      if (static_cast<int>(k) % columns_a_line == 0) {
        svg.text(0, y + 17, fmt::format("rank {}", r), {12});
      }
      card(svg, run, run.columns[k], r, x, y);
    }
  }
  if (run.ranks == static_cast<int>(notes_figure().front().cards.size())) {
    as_the_notes_draw(svg, run, names, 84 + 2 * (run.ranks * (block_height + row_gap) + 44));
  }
  return svg.document(title);
}

}  // namespace fivecuts::all_reduce
