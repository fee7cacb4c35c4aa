#include "ch03_allreduce/checks/measured.hpp"

using namespace fivecuts;
using namespace fivecuts::exercise;

namespace {

void check_case(ExerciseCheck& check, std::int64_t count) {
  Communicator& comm = check.comm();
  const int n = comm.size(), r = comm.rank();
  const Buffer x = loaded(check.context(), of_rank(r, count));
  const Buffer work = blank(check.context(), (count + n - 1) / n);
  const Traffic used = measured(check, [&] { ring(comm, x, work); });
  const ExerciseCheck::Mistake mistakes[] = {
      {of_rank(r, count), "that is the rank's own: nothing was summed over the ranks"}};
  check.equal(fmt::format("{} elements on {} ranks", count, n), copy_out(x), sum_of_ranks(n, count),
              mistakes);
  check.at_most("sent messages", used.messages, 2 * (n - 1));
  check.at_most("sent elements", used.sent / 4, 2 * (n - 1) * ((count + n - 1) / n));
  std::int64_t all = 0;
  for (const std::int64_t sent : comm.gather(used.sent)) all += sent / 4;
  check.at_most(fmt::format("and the others together sent elements of {}", count), all,
                2 * (n - 1) * count);
}

}  // namespace

int main(int argc, char** argv) {
  return run_exercise(argc, argv, "ch03_ex3",
                      "the sum on every rank for any size, 2 (N - 1) messages, one chunk of memory",
                      [](ExerciseCheck& check) {
                        const std::int64_t n = check.comm().size();
                        for (const std::int64_t count :
                             {4 * n, std::int64_t{0}, std::int64_t{1}, n - 1, n, n + 1,
                              std::int64_t{1000}, std::int64_t{1857}, std::int64_t{20'001}}) {
                          check_case(check, count);
                        }
                      });
}
