// Each claim of the notes whose home is this chapter: the formula at the run's own parameters
// against what a ledger, the clock or a comparison says. The notes' own sizes run dry, or on the
// cpu where numbers count, in worlds inside the run.
#include <algorithm>

#include "ch03_allreduce/numbers.hpp"
#include "ch03_allreduce/timing.hpp"
#include "common/comm/world.hpp"

namespace fivecuts::all_reduce {
namespace {

constexpr int four = 4;              // the notes' N
constexpr std::int64_t eight = 8;    // a D that it divides
constexpr std::int64_t element = 4;  // bytes

struct Scene {
  const Context& run;
  const Setting& setting;
  const RingRun& figure;
  ClaimRows& rows;

  int n() const { return ranks_of_claims(run); }
  std::int64_t d() const { return setting.elements; }
  double as_elements(std::int64_t bytes) const { return static_cast<double>(bytes) / element; }

  DryRun of(const char* name, int ranks, std::int64_t count) const {
    return dry_run(run, {ranks, count}, bare_links(0, element), algorithm(name));
  }
  /// Seconds where an element takes one to cross a link, or has a latency alone.
  double port_time(const char* name, int ranks, std::int64_t count) const {
    return of(name, ranks, count).seconds;
  }
  double latencies(const char* name, int ranks) const {
    return dry_run(run, {ranks, ranks}, bare_links(1, 1e30), algorithm(name)).seconds;
  }
  /// Elements that each rank sends; the same for all where `ranks` divides `count`.
  double sent(const char* name, int ranks, std::int64_t count) const {
    return as_elements(of(name, ranks, count).all_sent()) / ranks;
  }
};

bool all_ranks(const DryRun& run, std::size_t first, std::int64_t sent, std::int64_t received) {
  return std::all_of(run.traffic.begin() + static_cast<std::ptrdiff_t>(first), run.traffic.end(),
                     [&](const Traffic& t) {
                       return t.sent == sent * element && t.received == received * element;
                     });
}

// --- how much each card sends (figure 2) ---

void ring_of_figure_2(const Scene& s) {
  const int n = s.n();
  const auto d = static_cast<double>(s.d());
  const DryRun three = s.of("ring", 3, 12);
  s.rows.equal(
      "C02.9", 2 * (n - 1) / static_cast<double>(n) * d, s.sent("ring", n, s.d()),
      "elements from each rank",
      fmt::format("N = 3, 12 elements: {} sent, {} received", s.as_elements(three.traffic[1].sent),
                  s.as_elements(three.traffic[1].received)),
      all_ranks(three, 0, 16, 16));

  std::string seen;
  bool bounded = true;
  double before = 0, share = 0;
  for (const int ranks : {2, 3, 4, 8, 16, 64}) {
    share = s.sent("ring", ranks, 192) / 192;
    bounded = bounded && share > before && share < 2 &&
              s.of("ring", ranks, 192).all_sent() == 2 * (ranks - 1) * 192 * element;
    seen += fmt::format("{}{:.4g}", seen.empty() ? "" : ", ", share);
    before = share;
  }
  s.rows.equal("C02.10", 2 * 63 / 64.0, share, "of Ψ at N = 64",
               seen + " at N = 2, 3, 4, 8, 16, 64; 2(N-1) together", bounded);

  std::string efficiencies;
  for (const int ranks : {2, 4, 8, 64}) {
    efficiencies += fmt::format("{}{:.3f}", efficiencies.empty() ? "" : ", ",
                                weak_scaling(s.run, ranks, 0.1, 0));
  }
  const double late_8 = weak_scaling(s.run, 8, 0.1, 0.002);
  const double late_64 = weak_scaling(s.run, 64, 0.1, 0.002);
  s.rows.equal("C02.11", 1 / (1 + 2 * 7 / 8.0 * 0.1), weak_scaling(s.run, 8, 0.1, 0),
               "efficiency at N = 8",
               fmt::format("{} at 2, 4, 8, 64; with a latency of 0.002: {:.3f} at 8, {:.3f} at 64",
                           efficiencies, late_8, late_64),
               late_64 < late_8);
}

// --- the root, the full exchange, the ring ---

void root(const Scene& s) {
  const int n = s.n();
  const DryRun own = s.of("gather_broadcast", n, s.d());
  const DryRun small = s.of("gather_broadcast", four, eight);
  s.rows.equal(
      "C03.1", static_cast<double>((n - 1) * s.d()), s.as_elements(own.traffic[0].sent),
      "elements from the root",
      fmt::format("N = 4, D = 8: root {} in and {} out, others {} and {}, together {}",
                  s.as_elements(small.traffic[0].received), s.as_elements(small.traffic[0].sent),
                  s.as_elements(small.traffic[1].received), s.as_elements(small.traffic[1].sent),
                  s.as_elements(small.all_sent())),
      own.traffic[0].received == own.traffic[0].sent && all_ranks(own, 1, s.d(), s.d()) &&
          all_ranks(small, 1, 8, 8) && small.all_sent() == 48 * element);

  const auto ratio = [&](int ranks) {
    return s.port_time("gather_broadcast", ranks, 2 * ranks) /
           s.port_time("ring", ranks, 2 * ranks);
  };
  s.rows.equal("C03.2", n, ratio(n), "times as long as the ring",
               fmt::format("N = 4, D = 8: {} against {}; N = 64: {:.10g} times",
                           s.port_time("gather_broadcast", four, eight),
                           s.port_time("ring", four, eight), ratio(64)),
               ratio(64) > 63.9);
}

/// All that need no memory in common, which pretended nodes do not have.
bool on_any_ranks(const NamedAlgorithm& one) { return one.by != NamedAlgorithm::By::memory; }

/// Algorithms whose sum of whole numbers is the direct one on each of four ranks.
int equal_sums(const Scene& s) {
  const auto one_rank = [](Context& context) {
    int right = 0;
    for (const NamedAlgorithm& one : all_algorithms()) {
      if (!on_any_ranks(one)) continue;
      Workspace work;
      const Buffer x(context.device, Category::gradient, 1, eight, DType::i64);
      fill(x, [&](std::int64_t i) { return 10 * i + context.rank(); });
      one.run(context.world, x, Reduction::sum, work);
      const std::vector<double> got = numbers(x);
      bool same = true;
      for (std::size_t i = 0; i < got.size(); ++i) {
        same = same && got[i] == 40 * static_cast<double>(i) + 6;
      }
      right += same ? 1 : 0;
    }
    return right;
  };
  return std::ranges::min(
      world_results<int>(four, inner_world(s.run, Device::Kind::cpu), one_rank));
}

void naive(const Scene& s) {
  const int n = s.n();
  const auto count = static_cast<double>(std::ranges::count_if(all_algorithms(), on_any_ranks));
  s.rows.equal("C03.3", count, equal_sums(s), "algorithms end with the same sums");

  const DryRun own = s.of("full_exchange", n, s.d()), small = s.of("full_exchange", four, eight);
  const DryRun ring = s.of("ring", four, eight);
  s.rows.equal(
      "C03.4", static_cast<double>((n - 1) * s.d()), s.as_elements(own.traffic[0].sent),
      "elements from each rank",
      fmt::format("N = 4, D = 8: {} sent and {} received; the ring {} and {}",
                  s.as_elements(small.traffic[0].sent), s.as_elements(small.traffic[0].received),
                  s.as_elements(ring.traffic[0].sent), s.as_elements(ring.traffic[0].received)),
      all_ranks(own, 0, (n - 1) * s.d(), (n - 1) * s.d()) && all_ranks(ring, 0, 12, 12));

  const std::int64_t of_root = s.of("gather_broadcast", n, s.d()).all_sent();
  const std::int64_t of_ring = s.of("ring", n, s.d()).all_sent();
  s.rows.equal(
      "C03.5", static_cast<double>(n * (n - 1) * s.d()), s.as_elements(own.all_sent()),
      "elements from all in the full exchange",
      fmt::format(
          "root {}, ring {}; port time for N = 4, D = 8: root {}, full exchange {}, ring {}",
          s.as_elements(of_root), s.as_elements(of_ring),
          s.port_time("gather_broadcast", four, eight), s.port_time("full_exchange", four, eight),
          s.port_time("ring", four, eight)),
      of_root == of_ring && of_ring == 2 * (n - 1) * s.d() * element);
}

void ring_bytes(const Scene& s) {
  const int n = s.n();
  const DryRun own = s.of("ring", n, s.d()), small = s.of("ring", four, eight);
  const bool steps =
      std::ranges::all_of(own.traffic, [&](const Traffic& t) { return t.messages == 2 * (n - 1); });
  s.rows.equal("C03.6", static_cast<double>(2 * (n - 1) * s.d()), s.as_elements(own.all_sent()),
               "elements from all",
               fmt::format("N = 4, D = 8: {} sent, {} received by each in {} steps",
                           s.as_elements(small.traffic[0].sent),
                           s.as_elements(small.traffic[0].received), small.traffic[0].messages),
               all_ranks(small, 0, 12, 12));
  s.rows.equal("C03.7", 1.5, s.sent("ring", four, eight) / eight, "D from each of four ranks");
  const double at_2 = s.sent("ring", 2, eight) / eight, at_8 = s.sent("ring", 8, eight) / eight;
  s.rows.equal("C03.8", 1.75, at_8, "D from each of eight ranks", fmt::format("{} at N = 2", at_2),
               at_2 == 1);
  s.rows.equal("C03.9", 2 * (n - 1), static_cast<double>(own.traffic[0].messages), "steps",
               fmt::format("N = 4: {} steps of {} elements", small.traffic[0].messages,
                           s.as_elements(small.traffic[0].sent / small.traffic[0].messages)),
               steps && small.traffic[0].messages == 6);
}

// --- figure 3 ---

void figure(const Scene& s) {
  const RingRun& f = s.figure;
  int same = 0;
  for (const char* name : {"start", "RS-1", "RS-2", "RS-3"}) {
    const auto notes = std::ranges::find(notes_figure(), name, &NotesColumn::name);
    same += f.ranks - wrong_cells(f, *notes);
  }
  s.rows.equal("C03.10", 16, same, "cells of four columns as in the notes",
               "one send and one receive of a block by each rank in each step", f.one_each());

  int one_whole = 0;
  std::string owners;
  const auto count = [&](const char* column, int rank, int parts) {
    return std::ranges::count_if(f.after(column).held[static_cast<std::size_t>(rank)],
                                 [&](auto held) { return contributions(held) == parts; });
  };
  for (int r = 0; r < f.ranks; ++r) {
    one_whole += count("RS-3", r, f.ranks) == 1 ? 1 : 0;
    owners += fmt::format(" {}", fmt::join(live_blocks(f.after("RS-3"), r), ","));
  }
  s.rows.equal("C03.11", f.ranks, one_whole, "ranks with one whole block", "blocks" + owners,
               owners == " 4 1 2 3");

  const auto& notes = notes_figure();
  const int wrong = wrong_cells(f, notes[4]) + wrong_cells(f, notes[5]);
  const int other_way =
      wrong_cells(the_other_way(f, 1), notes[4]) + wrong_cells(the_other_way(f, 2), notes[5]);
  const int printed =
      schedules(notes[3].cards, notes[4].cards) + schedules(notes[4].cards, notes[5].cards);
  const Blocks before = held_after(f, "RS-3"), first = held_after(f, "AG-1"),
               second = held_after(f, "AG-2");
  const int run = std::min(schedules(before, first), schedules(first, second));
  s.rows.equal("C03.12", 7, wrong, "of 8 cells differ from the run",
               fmt::format("{} from one the other way round; ways to send one block each: {} as "
                           "printed, {} in the run",
                           other_way, printed, run),
               other_way == 5 && printed == 0 && run > 0);

  int complete = 0, partial = 0;
  for (int r = 0; r < f.ranks; ++r) {
    complete += count("AG-3", r, f.ranks) == f.ranks ? 1 : 0;
    partial += count("RS-1", r, 2) == 1 && count("RS-2", r, 3) == 1 ? 1 : 0;
  }
  s.rows.equal("C03.13", f.ranks, complete, "ranks with all blocks whole");
  s.rows.equal("C03.14", f.ranks, partial,
               "ranks with one sum of two after RS-1 and one of three after RS-2");
}

void phases(const Scene& s) {
  const int n = s.n();
  const Cluster links = bare_links(0, element);
  const auto elements = [&](int ranks, std::int64_t count, bool scatter) {
    const DryRun run =
        dry_run(s.run, {ranks, count}, links, [&](Communicator& comm, Tensor x, Workspace& work) {
          if (scatter) return reduce_scatter(comm, x, Reduction::sum, work);
          all_gather(comm, x);
        });
    return s.as_elements(run.all_sent());
  };
  const double scattered = elements(n, s.d(), true), gathered = elements(n, s.d(), false);
  s.rows.equal("C03.15", static_cast<double>((n - 1) * s.d()), scattered,
               "elements from all in the reduce-scatter",
               fmt::format("{} in the all-gather; N = 4, D = 8: {} + {} from each", gathered,
                           elements(four, eight, true) / four, elements(four, eight, false) / four),
               gathered == scattered);
}

// --- time ---

void times(const Scene& s) {
  const double slow = between_slow_halves(s.run, {four, eight}, algorithm("ring")).seconds;
  s.rows.equal("C03.16", 120, slow, "with the links between two halves at B/10",
               fmt::format("{} without", s.port_time("ring", four, eight)),
               s.port_time("ring", four, eight) == 12);
  s.rows.equal("C03.17", 126, s.latencies("ring", 64), "α for the ring at N = 64",
               fmt::format("{} α for halving-doubling; N = 4: {} α and {} α",
                           s.latencies("halving_doubling", 64), s.latencies("ring", four),
                           s.latencies("halving_doubling", four)),
               s.latencies("halving_doubling", 64) == 12 && s.latencies("ring", four) == 6);

  // alpha = 100 and an element a second; the longest tensor for which the tree is not slower.
  const Cluster links = bare_links(100, element);
  std::int64_t crossing = 0;
  for (std::int64_t count = four; count <= 200; count += four) {
    const auto seconds = [&](const char* name) {
      return dry_run(s.run, {four, count}, links, algorithm(name)).seconds;
    };
    if (seconds("tree") <= seconds("ring")) crossing = count;
  }
  s.rows.equal("C03.18", 80, static_cast<double>(crossing),
               "elements: up to there the tree is no slower than the ring (α = 100, N = 4)");

  std::string full, ring;
  for (const int ranks : {2, 4, 8}) {
    full += fmt::format(" {}", s.port_time("full_exchange", ranks, eight));
    ring += fmt::format(" {}", s.port_time("ring", ranks, eight));
  }
  s.rows.equal("C03.19", 56, s.port_time("full_exchange", 8, eight),
               "port time of the full exchange at N = 8, D = 8",
               fmt::format("N = 2, 4, 8:{}; the ring{}", full, ring),
               full == " 8 24 56" && ring == " 8 12 14");
}

}  // namespace

int ranks_of_claims(const Context& run) {
  return run.size() >= 2 && run.size() <= 64 ? run.size() : four;
}

void measure_claims(const Context& run, const Setting& setting, const RingRun& figure_of_four,
                    ClaimRows& rows) {
  const Scene scene{run, setting, figure_of_four, rows};
  ring_of_figure_2(scene);
  root(scene);
  naive(scene);
  ring_bytes(scene);
  figure(scene);
  phases(scene);
  times(scene);
}

}  // namespace fivecuts::all_reduce
