#include "ch03_allreduce/checks/measured.hpp"

using namespace fivecuts;
using namespace fivecuts::exercise;

namespace {

void check_case(ExerciseCheck& check, std::int64_t of_chunk) {
  Communicator& comm = check.comm();
  const int n = comm.size(), r = comm.rank();
  const std::int64_t count = of_chunk * n;
  const std::vector<double> own = of_rank(r, count), sum = sum_of_ranks(n, count);
  const Buffer x = loaded(check.context(), own), work = blank(check.context(), of_chunk);
  const Traffic used = measured(check, [&] { reduce_scatter(comm, x, work); });

  const std::vector<float> got = copy_out(x);
  const Part mine = part_of(count, n, r);
  std::vector<double> neighbours(mine.count);
  for (std::int64_t i = 0; i < mine.count; ++i) {
    neighbours[static_cast<std::size_t>(i)] =
        own[static_cast<std::size_t>(mine.first + i)] + value((r + 1) % n, mine.first + i);
  }
  std::string where = fmt::format("chunk {} of rank {}, {} elements", r, r, count);
  for (int c = 0; c < n; ++c) {
    const Part other = part_of(count, n, c);
    if (c == r || part(got, other).empty()) continue;
    const auto whole = part(sum, other);
    const auto held = part(got, other);
    if (std::equal(held.begin(), held.end(), whole.begin(),
                   [](float a, double b) { return static_cast<double>(a) == b; })) {
      where += fmt::format(" (chunk {} is whole here: it belongs to rank {})", c, c);
    }
  }
  const ExerciseCheck::Mistake mistakes[] = {
      {part(own, mine), "that is the rank's own: nothing was added to this chunk"},
      {neighbours, "only the right neighbour's numbers came to it: pass on what was added up"}};
  check.equal(where, part(got, mine), part(sum, mine), mistakes);
  check.at_most("sent messages", used.messages, n - 1);
  check.at_most("sent elements", used.sent / 4, (n - 1) * of_chunk);
}

}  // namespace

int main(int argc, char** argv) {
  return run_exercise(argc, argv, "ch03_ex1",
                      "chunk r whole on rank r, after N - 1 messages of a chunk from each",
                      [](ExerciseCheck& check) {
                        check_case(check, 1);
                        check_case(check, 4);
                        check_case(check, 5000);  // longer than what any library keeps
                      });
}
