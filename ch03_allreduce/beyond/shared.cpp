#include "ch03_allreduce/beyond/shared.hpp"

#include <algorithm>

#include "common/compute/operations.hpp"

namespace fivecuts::all_reduce {

//   N = 3           before                     rank 0     rank 1     rank 2           after
//
//   rank 0's     [ a0 | b0 | c0 ]              a          b          c            [ a | b | c ]
//   rank 1's     [ a1 | b1 | c1 ]  meet        from       from       from   meet  [ a | b | c ]
//   rank 2's     [ a2 | b2 | c2 ]              all to all all to all all to all   [ a | b | c ]
//
// Invariant: between the meetings chunk r of all tensors is rank r's: nobody else reads or writes
// it. Each element is added in the order of the ranks by one of them, so all have the same bits.
void shared_in(SharedBuffer& memory, Tensor x, Reduction how) {
  memory.meet(x, how);  // all numbers are there
  const auto [first, count] = part_of(x.count(), memory.ranks(), memory.rank());
  const auto mine = memory.everywhere(x.part(first, count));
  if (how == Reduction::sum) {
    add_all(mine);
  } else {
    maximum_all(mine);
  }
  memory.meet(x, how);  // all sums are there
}

void shared(Communicator& comm, Tensor x, Reduction how, Workspace& work) {
  if (comm.size() == 1 || x.empty()) return;
  auto& memory = work.once<SharedBuffer>([] { return SharedBuffer(); });
  if (memory.tensor().bytes() < x.bytes()) {
    memory = SharedBuffer();  // first, so that never both are there
    memory = SharedBuffer(comm, Category::workspace, 1, x.count(), x.type());
  }
  const Tensor copied(*x.device(), memory.tensor().data(), x.type(), 1, x.count());
  copy(x, copied);
  shared_in(memory, copied, how);
  copy(copied, x);
}

AllReduce shared_in(std::shared_ptr<std::vector<SharedBuffer>> memories) {
  return [memories](Communicator&, Tensor x) {
    const auto of_x = std::ranges::find_if(*memories, [&](auto& one) { return one.holds(x); });
    require(of_x != memories->end(), "a tensor that lies in no memory that is shared");
    shared_in(*of_x, x, Reduction::sum);
  };
}

}  // namespace fivecuts::all_reduce
