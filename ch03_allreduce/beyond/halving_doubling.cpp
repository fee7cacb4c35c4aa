#include <bit>

#include "ch03_allreduce/beyond/beyond.hpp"

namespace fivecuts::all_reduce {
namespace {

//   N = 4, rank 0    [ 0 1 2 3 ]   whole tensor: the second half to rank 2, the first half from it
//                    [ 0 1 ]       its half:     the second quarter to rank 1, the first from it
//                    [ 0 ]         a quarter, whole. And back, each exchange the other way round.
//
// Invariant: on the way down, `x` is the sum of all ranks that differ from this one in bits above
// `distance` only; on the way up it is whole.
struct Halving {
  Communicator& comm;
  Reduction how;
  Workspace& work;
  int me;                             // among those that take part, a power of two
  std::function<int(int)> rank_of{};  // where they stand in `comm`

  void halve_and_double(Tensor x, int distance) const {
    if (distance == 0) return;
    const int peer = rank_of(me ^ distance);
    const auto half = [&](int h) {
      const auto [first, count] = part_of(x.count(), 2, h);
      return x.part(first, count);
    };
    const int second = (me & distance) != 0 ? 1 : 0;
    const Tensor mine = half(second), theirs = half(1 - second);
    const Tensor incoming = work.beside(x, mine.count());
    comm.exchange(to(peer, theirs), from(peer, incoming));
    combine(mine, incoming, how);
    halve_and_double(mine, distance / 2);
    comm.exchange(to(peer, mine), from(peer, theirs));
  }
};

}  // namespace

void halving_doubling(Communicator& comm, Tensor x, Reduction how, Workspace& work) {
  const int n = comm.size(), r = comm.rank();
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(n)));
  const int folded = n - power;  // odd ranks below 2 * folded leave their numbers to the one before
  const bool paired = r < 2 * folded;
  if (paired && r % 2 == 1) {
    comm.send(r - 1, x);
    comm.receive(r - 1, x);
    return;
  }
  if (paired) {
    const Tensor incoming = work.beside(x, x.count());
    comm.receive(r + 1, incoming);
    combine(x, incoming, how);
  }
  const Halving others{comm, how, work, paired ? r / 2 : r - folded,
                       [&](int k) { return k < folded ? 2 * k : k + folded; }};
  others.halve_and_double(x, power / 2);
  if (paired) comm.send(r + 1, x);
}

}  // namespace fivecuts::all_reduce
