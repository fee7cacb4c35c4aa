// The library's collectives and the control channel.
#include <algorithm>

#include "common/comm/agreement.hpp"
#include "common/comm/communicator_state.hpp"

namespace fivecuts {

// --- the library's collectives ---

namespace {

// What a ring would do: n - 1 of n chunks go round to gather or to reduce, and both for an
// all-reduce. A broadcast goes down a chain.

/// What rank `r` of `n` sends and receives. `root`: of a broadcast.
Traffic ring_traffic(Operation operation, const Tensor& tensor, int n, int r, int root) {
  const auto without_chunk = [&](int chunk) {
    return tensor.bytes() -
           part_of(tensor.count(), n, (chunk + n) % n).count * size_of(tensor.type());
  };
  Traffic ring;
  if (n == 1) return ring;
  if (operation == Operation::all_reduce || operation == Operation::reduce_scatter) {
    ring += {without_chunk(r), without_chunk(r + 1), 0, n - 1};
  }
  if (operation == Operation::all_reduce || operation == Operation::all_gather) {
    ring += {without_chunk(r - 1), without_chunk(r), 0, n - 1};
  }
  if (operation == Operation::broadcast) {
    const int hop = (r - root + n) % n;
    ring +=
        {hop < n - 1 ? tensor.bytes() : 0, hop > 0 ? tensor.bytes() : 0, 0, hop < n - 1 ? 1 : 0};
  }
  return ring;
}

/// How long it takes from the last rank's coming to it. A chain passes small pieces on at once, so
/// it costs a latency a hop and the bytes once.
double ring_seconds(Operation operation, const Tensor& tensor, int n, const Link& slowest) {
  const std::int64_t chunk = part_of(tensor.count(), n, 0).count * size_of(tensor.type());
  const double step = slowest.latency + static_cast<double>(chunk) / slowest.bandwidth;
  if (operation == Operation::all_reduce) return 2 * (n - 1) * step;
  if (operation != Operation::broadcast) return (n - 1) * step;
  const double whole = static_cast<double>(tensor.bytes()) / slowest.bandwidth;
  return n == 1 ? 0 : (n - 1) * slowest.latency + whole;
}

}  // namespace

Guard::Watch Communicator::collective(Operation operation, Tensor tensor, Reduction reduction,
                                      int root) {
  State& s = *state_;
  Clock& clock = *s.observers.clock;
  const int n = s.size(), r = s.rank(), left = (r - 1 + n) % n;
  double latest = 0;
  if (s.announces()) {
    Envelope mine = s.envelope(operation, tensor);
    mine.reduction = reduction;
    mine.root = root;
    mine.time = clock.now();
    latest = agree(*s.transport, *s.observers.guard, s.name, mine);
  }
  Traffic ring = ring_traffic(operation, tensor, n, r, root);
  if (s.leaves_node(left)) ring.sent_inter_node = ring.sent;
  s.observers.traffic->add({s.name, name_of(operation), true}, ring);
  if (clock.on()) {
    bool one_node = true;
    for (int peer = 0; peer < n; ++peer) one_node = one_node && !s.leaves_node(peer);
    const double end = latest + ring_seconds(operation, tensor, n, clock.cluster().link(!one_node));
    Event event;
    event.kind = Event::Kind::collective;
    event.name = name_of(operation);
    event.waited = latest - clock.now();
    event.bytes = ring.sent + ring.received;
    event.communicator = s.name;
    clock.wait_until(end, std::move(event));
  }
  if (s.observers.verbose) {
    fmt::print(stderr, "rank {} of '{}': the library's {} of {} x {}\n", r, s.name,
               name_of(operation), tensor.count(), fivecuts::name_of(tensor.type()));
  }
  return s.observers.guard->watch(
      [&] { return fmt::format("the library's {} on '{}'", name_of(operation), s.name); });
}

namespace {
bool overlap(Tensor a, Tensor b) {
  const std::less<const std::byte*> before;
  return !a.empty() && !b.empty() && before(a.data(), b.data() + b.bytes()) &&
         before(b.data(), a.data() + a.bytes());
}
}  // namespace

void Communicator::all_reduce(Tensor t, Reduction reduction) {
  const Guard::Watch watch = collective(Operation::all_reduce, t, reduction, -1);
  if (!state_->dry()) state_->transport->all_reduce(t, reduction);
}

void Communicator::broadcast(Tensor t, int root) {
  state_->check_peer(root);
  const Guard::Watch watch = collective(Operation::broadcast, t, Reduction::sum, root);
  if (!state_->dry()) state_->transport->broadcast(t, root);
}

void Communicator::all_gather(Tensor part, Tensor whole) {
  const Part place = part_of(whole.count(), size(), rank());
  require(part.count() == place.count, "all_gather: a part of another size");
  require(part.type() == whole.type(), "all_gather: a part of another type");
  require(!overlap(part, whole) || part.data() == whole.part(place.first, place.count).data(),
          "all_gather: a part that lies elsewhere in the whole than where it belongs");
  const Guard::Watch watch = collective(Operation::all_gather, whole, Reduction::sum, -1);
  if (!state_->dry()) state_->transport->all_gather(part, whole);
}

void Communicator::reduce_scatter(Tensor whole, Tensor part, Reduction reduction) {
  require(part.count() == part_of(whole.count(), size(), rank()).count,
          "reduce_scatter: a part of another size");
  require(part.type() == whole.type(), "reduce_scatter: a part of another type");
  require(!overlap(part, whole), "reduce_scatter: the part lies in the whole");
  const Guard::Watch watch = collective(Operation::reduce_scatter, whole, reduction, -1);
  if (!state_->dry()) state_->transport->reduce_scatter(whole, part, reduction);
}

void Communicator::end_of_run() {
  if (state_->guarded()) {
    agree(*state_->transport, *state_->observers.guard, name(),
          state_->envelope(Operation::end_of_run, Tensor()));
  }
  state_->observers.device->synchronize();  // a GPU too has ended its part
}

// --- the control channel ---

std::vector<std::vector<std::byte>> Communicator::gather_bytes(
    std::span<const std::byte> mine) const {
  const auto watch = state_->observers.guard->watch([&] {
    return fmt::format("the others on the control channel of '{}' (hashes, verdicts)",
                       state_->name);
  });
  return state_->transport->all_gather_host(mine);
}

std::string Communicator::on_rank_0(const std::function<std::string()>& work) const {
  return on_all_ranks([&] { return rank() == 0 ? work() : std::string(); }).front();
}

std::vector<std::string> Communicator::on_all_ranks(
    const std::function<std::string()>& work) const {
  const std::string mine = work();
  std::vector<std::string> all;
  for (const auto& bytes :
       state_->transport->all_gather_host(std::as_bytes(std::span(mine.data(), mine.size())))) {
    all.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return all;
}

void Communicator::barrier() const { gather_bytes({}); }

bool Communicator::all_true(bool mine) const {
  const auto all = gather(static_cast<char>(mine));
  return std::all_of(all.begin(), all.end(), [](char one) { return one != 0; });
}

std::vector<std::string> Communicator::gather_text(const std::string& mine) const {
  std::vector<std::string> all;
  for (const auto& bytes : gather_bytes(std::as_bytes(std::span(mine.data(), mine.size())))) {
    all.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return all;
}

}  // namespace fivecuts
