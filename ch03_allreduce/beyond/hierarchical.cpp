#include <map>
#include <numeric>

#include "ch03_allreduce/beyond/beyond.hpp"

namespace fivecuts::all_reduce {
namespace {

//   2 nodes of 3:    inside      0 - 1 - 2        3 - 4 - 5       each a ring
//                    across      0 - 3   1 - 4   2 - 5            each a ring, with a third of D
struct Groups {
  Communicator inside, across;
};

/// Node of each rank of `comm`: named by its first rank.
std::vector<int> nodes_of(const Communicator& comm, int ranks_per_node) {
  int mine = 0;
  if (ranks_per_node > 0) {
    mine = comm.rank() / ranks_per_node;
  } else {
    while (mine != comm.rank() && comm.leaves_node(mine)) ++mine;
  }
  return comm.gather(mine);
}

Groups groups_of(const Communicator& comm, int ranks_per_node) {
  std::map<int, int> size;
  std::vector<int> place;  // of each rank, in its node
  const std::vector<int> nodes = nodes_of(comm, ranks_per_node);
  for (const int node : nodes) place.push_back(size[node]++);
  int members = 0;
  for (const auto& [node, ranks] : size) members = std::gcd(members, ranks);
  const int n = comm.size();
  const auto at = [&](int r) { return place[static_cast<std::size_t>(r)]; };
  const auto inside = [&](int r) {
    return nodes[static_cast<std::size_t>(r)] * n + at(r) / members;
  };
  return {comm.split("node", inside), comm.split("across", [&](int r) { return at(r) % members; })};
}

}  // namespace

void hierarchical(Communicator& comm, Tensor x, Reduction how, Workspace& work) {
  auto& [inside, across] = work.once<Groups>([&] { return groups_of(comm, work.ranks_per_node); });
  reduce_scatter(inside, x, how, work);
  const auto [first, count] = part_of(x.count(), inside.size(), inside.rank());
  ring(across, x.part(first, count), how, work);
  all_gather(inside, x);
}

}  // namespace fivecuts::all_reduce
