#include "ch03_allreduce/checks/measured.hpp"

using namespace fivecuts;
using namespace fivecuts::exercise;

namespace {

void check_case(ExerciseCheck& check, std::int64_t of_chunk) {
  Communicator& comm = check.comm();
  const int n = comm.size(), r = comm.rank();
  const std::int64_t count = of_chunk * n;
  const std::vector<double> all = of_rank(0, count);  // rank r begins with its chunk of these
  const Part mine = part_of(count, n, r);
  std::vector<double> start(all.size(), -1);
  for (std::int64_t i = mine.first; i < mine.first + mine.count; ++i) {
    start[static_cast<std::size_t>(i)] = all[static_cast<std::size_t>(i)];
  }
  const Buffer x = loaded(check.context(), start);
  const Traffic used = measured(check, [&] { all_gather(comm, x); });
  const ExerciseCheck::Mistake mistakes[] = {{start, "no chunk has come to it"}};
  check.equal(fmt::format("{} elements", count), copy_out(x), all, mistakes);
  check.at_most("sent messages", used.messages, n - 1);
  check.at_most("sent elements", used.sent / 4, (n - 1) * of_chunk);
}

}  // namespace

int main(int argc, char** argv) {
  return run_exercise(argc, argv, "ch03_ex2",
                      "all chunks on every rank, after N - 1 messages of a chunk from each",
                      [](ExerciseCheck& check) {
                        check_case(check, 1);
                        check_case(check, 4);
                        check_case(check, 5000);
                      });
}
