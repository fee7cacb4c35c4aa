#include "ch03_allreduce/all_reduce.hpp"

#include "common/compute/operations.hpp"

namespace fivecuts::all_reduce {

// --- everyone to rank 0, and back ---

// Right, and simple. But N-1 tensors queue at the root's one incoming port, and N-1 at its outgoing
// one, while the ports of all others are idle.
void gather_broadcast(Communicator& comm, Tensor x, Reduction how, Workspace& work) {
  if (comm.rank() > 0) {
    comm.send(0, x);
    comm.receive(0, x);
    return;
  }
  for (int r = 1; r < comm.size(); ++r) {
    const Tensor incoming = work.beside(x, x.count());  // one tensor at a time, for any N
    comm.receive(r, incoming);
    combine(x, incoming, how);
  }
  for (int r = 1; r < comm.size(); ++r) comm.send(r, x);
}

// --- everyone to everyone ---

// No root, no queue at one port: every port carries N-1 tensors, and every rank adds them all. Each
// adds in the order of the ranks, whatever came first: own numbers first would be another order on
// each rank, and other last bits (C02.4). For that order all must be there, so the memory is that
// of N-1 tensors.
void full_exchange(Communicator& comm, Tensor x, Reduction how, Workspace& work) {
  const int n = comm.size(), r = comm.rank();
  const Tensor others = work.beside(x, (n - 1) * x.count());
  const auto of = [&](int k) {  // rank k's numbers
    return k == r ? x : others.part((k < r ? k : k - 1) * x.count(), x.count());
  };
  std::vector<Transfer> all;
  for (int step = 1; step < n; ++step) {  // in turn: no two send to the same rank at a time
    all.push_back(to((r + n - step) % n, x));
    all.push_back(from((r + step) % n, of((r + step) % n)));
  }
  comm.exchange_all(all);
  for (int k = 1; k < n; ++k) combine(of(0), of(k), how);
  if (r > 0) copy(of(0), x);
}

// --- the ring ---

void reduce_scatter(Communicator& comm, Tensor x, Reduction how, Workspace& work, int steps) {
  const int n = comm.size(), r = comm.rank(), left = (r + n - 1) % n, right = (r + 1) % n;
  const auto chunk = [&](int c) {
    const auto [first, count] = part_of(x.count(), n, c % n);
    return x.part(first, count);
  };
  const Tensor memory = work.beside(x, n > 1 ? chunk(0).count() : 0);  // no chunk is longer
  for (int step = 1; step < n && step <= steps; ++step) {
    const Tensor next = chunk(r + step + 1), incoming = memory.part(0, next.count());
    comm.exchange(to(left, chunk(r + step)), from(right, incoming));
    combine(next, incoming, how);  // the sum of step + 1 ranks now
  }
}

void all_gather(Communicator& comm, Tensor x, int steps) {
  const int n = comm.size(), r = comm.rank(), left = (r + n - 1) % n, right = (r + 1) % n;
  const auto chunk = [&](int c) {
    const auto [first, count] = part_of(x.count(), n, c % n);
    return x.part(first, count);
  };
  for (int step = 1; step < n && step <= steps; ++step) {  // what came last goes on
    comm.exchange(to(left, chunk(r + step - 1)), from(right, chunk(r + step)));
  }
}

void ring(Communicator& comm, Tensor x, Reduction how, Workspace& work) {
  reduce_scatter(comm, x, how, work);
  all_gather(comm, x);
}

// --- around them ---

void combine(Tensor to, Tensor from, Reduction how) {
  if (how == Reduction::sum) {
    add(to, from);
  } else {
    maximum(to, from);
  }
}

void average(Algorithm algorithm, Communicator& comm, Tensor x, Workspace& work) {
  require(x.type() != DType::i64, "the mean of whole numbers is none; take the sum of i64");
  algorithm(comm, x, Reduction::sum, work);
  scale(x, 1.0f / static_cast<float>(comm.size()));
}

Tensor Workspace::beside(Tensor x, std::int64_t count) {
  if (count == 0 || x.device() == nullptr) return x.part(0, 0);
  const Tensor kept = memory_;
  if (kept.device() != x.device() || kept.bytes() < count * size_of(x.type())) {
    memory_ = Buffer();  // first, so that never both are there
    memory_ = Buffer(*x.device(), Category::workspace, 1, count, x.type());
  }
  return {*x.device(), memory_.tensor().data(), x.type(), 1, count};
}

}  // namespace fivecuts::all_reduce
