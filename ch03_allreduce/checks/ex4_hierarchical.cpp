#include "ch03_allreduce/checks/measured.hpp"

using namespace fivecuts;
using namespace fivecuts::exercise;

namespace {

Tensor chunk(Tensor x, int n, int c) {
  const auto [first, count] = part_of(x.count(), n, c % n);
  return x.part(first, count);
}

const Phases phases = {
    [](Communicator& comm, Tensor x, Tensor work) {
      const int n = comm.size(), r = comm.rank();
      for (int step = 1; step < n; ++step) {
        const Tensor next = chunk(x, n, r + step + 1), incoming = work.part(0, next.count());
        comm.exchange(to((r + n - 1) % n, chunk(x, n, r + step)), from((r + 1) % n, incoming));
        add(next, incoming);
      }
    },
    [](Communicator& comm, Tensor x) {
      const int n = comm.size(), r = comm.rank();
      for (int step = 1; step < n; ++step) {
        comm.exchange(to((r + n - 1) % n, chunk(x, n, r + step - 1)),
                      from((r + 1) % n, chunk(x, n, r + step)));
      }
    }};

/// Over the ranks of a group.
std::int64_t together(const Communicator& group, std::int64_t mine) {
  std::int64_t sum = 0;
  for (const std::int64_t one : group.gather(mine)) sum += one;
  return sum;
}

/// Nodes of `m` ranks, which divides their number.
void check_case(ExerciseCheck& check, int m, std::int64_t count) {
  Communicator& comm = check.comm();
  Context& context = check.context();
  const int n = comm.size(), nodes = n / m;
  Communicator inside = comm.split("inside", [m](int r) { return r / m; });
  Communicator across = comm.split("across", [m](int r) { return r % m; });
  const Buffer x = loaded(context, of_rank(comm.rank(), count));
  const Buffer work = blank(context, (count + m - 1) / m);
  const Traffic inside_before = context.traffic.measured("inside"),
                across_before = context.traffic.measured("across");
  measured(check, [&] { hierarchical(phases, inside, across, x, work); });
  const ExerciseCheck::Mistake mistakes[] = {
      {of_rank(comm.rank(), count), "that is the rank's own: nothing was summed over the ranks"}};
  check.equal(fmt::format("{} elements, {} nodes of {} ranks", count, nodes, m), copy_out(x),
              sum_of_ranks(n, count), mistakes);
  const Traffic in_node = context.traffic.measured("inside") - inside_before;
  const Traffic between = context.traffic.measured("across") - across_before;
  check.at_most("and the others of its node together sent elements inside",
                together(inside, in_node.sent) / 4, 2 * (m - 1) * count);
  check.at_most("and the others at its place together sent elements between nodes",
                together(across, between.sent) / 4,
                2 * (nodes - 1) * part_of(count, m, inside.rank()).count);
}

}  // namespace

int main(int argc, char** argv) {
  return run_exercise(argc, argv, "ch03_ex4",
                      "the sum on every rank, and only a chunk of it between nodes",
                      [](ExerciseCheck& check) {
                        for (int m = 1; m <= check.comm().size(); ++m) {
                          if (check.comm().size() % m != 0) continue;
                          for (const std::int64_t count : {1, 1000, 20'001}) {
                            check_case(check, m, count);
                          }
                        }
                      });
}
