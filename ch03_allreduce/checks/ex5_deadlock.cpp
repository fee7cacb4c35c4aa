#include "ch03_allreduce/checks/measured.hpp"

using namespace fivecuts;
using namespace fivecuts::exercise;

namespace {

/// What a rank has for its right neighbour, and for its left one.
std::vector<double> for_right(int rank, std::int64_t count) { return of_rank(2 * rank, count); }
std::vector<double> for_left(int rank, std::int64_t count) { return of_rank(2 * rank + 1, count); }

void check_case(ExerciseCheck& check, std::int64_t count) {
  Communicator& comm = check.comm();
  Context& context = check.context();
  const int n = comm.size(), r = comm.rank(), left = (r + n - 1) % n, right = (r + 1) % n;
  const Buffer to_right = loaded(context, for_right(r, count)),
               to_left = loaded(context, for_left(r, count)), from_left = blank(context, count),
               from_right = blank(context, count);
  const Traffic used =
      measured(check, [&] { trade(comm, to_right, to_left, from_left, from_right); });
  const ExerciseCheck::Mistake swapped_left[] = {
      {for_left(right, count),
       "that is what the right neighbour had for its left one: between two "
       "ranks, messages arrive in the order in which they were sent"}};
  check.equal(fmt::format("from_left, {} elements", count), copy_out(from_left),
              for_right(left, count), swapped_left);
  check.equal(fmt::format("from_right, {} elements", count), copy_out(from_right),
              for_left(right, count));
  check.at_most("sent messages", used.messages, 2);
}

}  // namespace

int main(int argc, char** argv) {
  return run_exercise(argc, argv, "ch03_ex5", "nobody waits for ever, whatever the size",
                      [](ExerciseCheck& check) {
                        check_case(check, 10);
                        check_case(check, 1'000'000);
                      });
}
