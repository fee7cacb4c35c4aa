#include "common/comm/communicator.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <thread>

#include "common/support/error.hpp"

namespace fivecuts {

// --- handles ----------------------------------------------------------------------------------------------

Pending& Pending::operator=(Pending&& other) noexcept(false) {
  wait();
  wait_ = std::exchange(other.wait_, nullptr);
  return *this;
}

Pending::~Pending() noexcept(false) {
  if (std::uncaught_exceptions() == 0) wait();
}

void Pending::wait() {
  if (wait_) std::exchange(wait_, nullptr)();
}

// --- state ------------------------------------------------------------------------------------------------

/// A receive under way. Its data is asked for at once, as without a guard, so that the guard changes nothing
/// in what waits for what; its envelope is compared before anyone is told that the data is there.
struct Communicator::Receive {
  Transfer transfer;
  Envelope envelope;
  std::unique_ptr<InFlight> announced;
};

struct Communicator::State {
  std::string name;
  std::unique_ptr<Transport> transport;
  Observers observers;
  std::shared_ptr<State> lane;  // the second lane; null on the lane itself
  std::uint64_t sequence = 0;

  bool guarded() const { return observers.guard->enabled(); }
  int rank() const { return transport->rank(); }
  int size() const { return transport->size(); }

  void check_peer(int peer) const {
    if (peer >= 0 && peer < size()) return;
    fail(fmt::format("rank {} was named as a peer on '{}', whose ranks are 0 to {}", peer, name, size() - 1));
  }

  Envelope envelope(Operation operation, const Tensor& tensor) {
    Envelope e;
    e.operation = operation;
    e.count = tensor.count();
    e.type = tensor.type();
    e.sequence = ++sequence;
    return e;
  }

  void count(Operation operation, const Transfer& t) const {
    if (t.peer == rank()) return;  // on no wire
    const bool sends = t.kind == Transfer::Kind::send;
    const bool leaves = transport->node(t.peer) != transport->node(rank());
    Traffic traffic;
    (sends ? traffic.sent : traffic.received) = t.tensor.bytes();
    traffic.messages = sends ? 1 : 0;
    traffic.sent_inter_node = sends && leaves ? t.tensor.bytes() : 0;
    observers.traffic->add({name, name_of(operation)}, traffic);
    if (observers.verbose && sends) {
      std::fprintf(stderr, "rank %d of '%s': %s of %lld x %s to rank %d\n", rank(), name.c_str(),
                   name_of(operation), static_cast<long long>(t.tensor.count()),
                   fivecuts::name_of(t.tensor.type()), t.peer);
    }
  }

  /// Envelopes are small: the library has taken them when start_send returns, or takes them in a wait.
  std::pair<std::shared_ptr<Envelope>, std::unique_ptr<InFlight>> announce(Operation operation,
                                                                           const Transfer& t) {
    auto e = std::make_shared<Envelope>(envelope(operation, t.tensor));
    auto sent = transport->start_send(std::as_bytes(std::span(e.get(), 1)), t.peer,
                                      Transport::Plane::envelope);
    return {std::move(e), std::move(sent)};
  }

  std::shared_ptr<Receive> expect(const Transfer& t) {
    auto receive = std::make_shared<Receive>(Receive{t, {}, nullptr});
    receive->announced = transport->start_receive(
        std::as_writable_bytes(std::span(&receive->envelope, 1)), t.peer, Transport::Plane::envelope);
    return receive;
  }

  std::string wanted(const Transfer& t) const {
    return fmt::format("{} x {} from rank {} on '{}'", t.tensor.count(),
                       fivecuts::name_of(t.tensor.type()), t.peer, name);
  }

  /// Waits for the envelope of a receive and compares it.
  void accept(Receive& receive) const {
    const Transfer& t = receive.transfer;
    const auto watch = observers.guard->watch([&] { return "a message: " + wanted(t); });
    receive.announced->wait();
    if (fits(receive.envelope, t.tensor.count(), t.tensor.type())) return;
    throw GuardError(fmt::format("rank {} of '{}' waits for {} x {} from rank {}, which came to {}", rank(),
                                 name, t.tensor.count(), fivecuts::name_of(t.tensor.type()), t.peer,
                                 describe(receive.envelope)));
  }

  /// All ranks come to the same collective, or none goes on: rank 0 compares what each is about to do.
  void agree(const Envelope& mine) const;
};

namespace {

struct Verdict {
  std::int32_t odd_rank = -1;  // the first rank that differs from rank 0; -1: none
  Envelope first, odd;
};

std::string list_of(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t k = 0; k < ranks.size(); ++k) text += (k == 0 ? "" : ", ") + std::to_string(ranks[k]);
  return text;
}

}  // namespace

void Communicator::State::agree(const Envelope& mine) const {
  const int n = size();
  Verdict verdict;
  auto watch = observers.guard->watch(
      [&] { return fmt::format("the others at {} on '{}'", describe(mine), name); });
  const auto bytes_of = [](auto& object) { return std::as_writable_bytes(std::span(&object, 1)); };
  if (rank() != 0) {
    Envelope sent = mine;
    const auto announced = transport->start_send(bytes_of(sent), 0, Transport::Plane::envelope);
    const auto answered = transport->start_receive(bytes_of(verdict), 0, Transport::Plane::verdict);
    announced->wait();
    answered->wait();
  } else {
    std::vector<Envelope> theirs(static_cast<std::size_t>(n));
    std::vector<std::unique_ptr<InFlight>> arriving(static_cast<std::size_t>(n));
    std::vector<int> missing;
    for (int r = 1; r < n; ++r) {
      const auto at = static_cast<std::size_t>(r);
      arriving[at] = transport->start_receive(bytes_of(theirs[at]), r, Transport::Plane::envelope);
      missing.push_back(r);
    }
    while (!missing.empty() && verdict.odd_rank < 0) {
      const std::size_t before = missing.size();
      std::erase_if(missing, [&](int r) {
        const auto at = static_cast<std::size_t>(r);
        if (!arriving[at]->done()) return false;
        if (verdict.odd_rank < 0 && !same_collective(mine, theirs[at])) verdict = {r, mine, theirs[at]};
        return true;
      });
      if (missing.size() == before) {
        std::this_thread::yield();
      } else if (!missing.empty()) {
        watch.now(fmt::format("{} at {} on '{}'", list_of(missing), describe(mine), name));
      }
    }
    std::vector<std::unique_ptr<InFlight>> answers;
    for (int r = 1; r < n; ++r) {
      answers.push_back(transport->start_send(bytes_of(verdict), r, Transport::Plane::verdict));
    }
    // On a disagreement some rank may never take its answer: the run ends with the exception below.
    if (verdict.odd_rank < 0) {
      for (const auto& answer : answers) answer->wait();
    }
  }
  if (verdict.odd_rank >= 0) {
    throw GuardError(fmt::format("the ranks of '{}' disagree: rank 0 came to {}, rank {} to {}", name,
                                 describe(verdict.first), verdict.odd_rank, describe(verdict.odd)),
                     rank() != 0);
  }
}

// --- groups -----------------------------------------------------------------------------------------------

Communicator::Communicator(std::string name, std::unique_ptr<Transport> transport, Observers observers)
    : state_(std::make_shared<State>()) {
  const auto lane_of = [&](std::unique_ptr<Transport> over) {
    auto state = std::make_shared<State>();
    state->name = name;
    state->transport = std::move(over);
    state->observers = observers;
    return state;
  };
  std::unique_ptr<Transport> second = transport->split(0);
  state_ = lane_of(std::move(transport));
  state_->lane = lane_of(std::move(second));
}

const std::string& Communicator::name() const { return state_->name; }
int Communicator::rank() const { return state_->rank(); }
int Communicator::size() const { return state_->size(); }
Transport& Communicator::transport() const { return *state_->transport; }

Communicator Communicator::split(const std::string& name,
                                 const std::function<int(int rank)>& group_of) const {
  if (state_->guarded()) {
    Envelope mine = state_->envelope(Operation::split, Tensor());
    std::strncpy(mine.detail, name.c_str(), sizeof mine.detail - 1);
    state_->agree(mine);
  }
  const int group = group_of(rank());
  require(group >= 0, "a group is numbered 0 or above");
  return {name, state_->transport->split(group), state_->observers};
}

// --- messages ---------------------------------------------------------------------------------------------

void Communicator::send(int peer, Tensor tensor) {
  Pending pending = isend(peer, tensor);
  const auto watch = state_->observers.guard->watch([&] {
    return fmt::format("rank {} to receive {} x {} on '{}'", peer, tensor.count(), name_of(tensor.type()),
                       name());
  });
  pending.wait();
}

void Communicator::receive(int peer, Tensor tensor) { ireceive(peer, tensor).wait(); }

Pending Communicator::isend(int peer, Tensor tensor) {
  State& s = *state_;
  s.check_peer(peer);
  const Transfer transfer = to(peer, tensor);
  s.count(Operation::send, transfer);
  std::shared_ptr<Envelope> envelope;
  std::shared_ptr<InFlight> announced;
  if (s.guarded()) std::tie(envelope, announced) = s.announce(Operation::send, transfer);
  std::shared_ptr<InFlight> data = s.transport->start(std::span(&transfer, 1));
  return Pending([state = state_, envelope, announced, data] {
    if (announced) announced->wait();
    data->wait();
  });
}

Pending Communicator::ireceive(int peer, Tensor tensor) {
  State& s = *state_;
  s.check_peer(peer);
  const Transfer transfer = from(peer, tensor);
  std::shared_ptr<Receive> receive;
  if (s.guarded()) receive = s.expect(transfer);
  std::shared_ptr<InFlight> data = s.transport->start(std::span(&transfer, 1));
  return Pending([state = state_, transfer, receive, data] {
    if (receive) state->accept(*receive);
    const auto watch =
        state->observers.guard->watch([&] { return "the rest of " + state->wanted(transfer); });
    data->wait();
    state->count(Operation::send, transfer);
  });
}

void Communicator::exchange_all(std::span<const Transfer> transfers) {
  State& s = *state_;
  for (const Transfer& t : transfers) s.check_peer(t.peer);
  std::vector<std::pair<std::shared_ptr<Envelope>, std::unique_ptr<InFlight>>> announced;
  std::vector<std::shared_ptr<Receive>> receives;
  for (const Transfer& t : transfers) {
    if (!s.guarded()) break;
    if (t.kind == Transfer::Kind::send) {
      announced.push_back(s.announce(Operation::exchange, t));
    } else {
      receives.push_back(s.expect(t));
    }
  }
  const auto data = s.transport->start(transfers);
  for (const auto& receive : receives) s.accept(*receive);
  const auto watch = s.observers.guard->watch(
      [&] { return fmt::format("an exchange on '{}' to complete", s.name); });
  data->wait();
  for (const auto& [envelope, sent] : announced) sent->wait();
  for (const Transfer& t : transfers) s.count(Operation::exchange, t);
}

Pending Communicator::async_work(std::function<void(Communicator&)> work) {
  require(state_->lane != nullptr, "async() inside async()");
  auto future = std::make_shared<std::future<void>>(
      state_->observers.stream->run([lane = state_->lane, work = std::move(work)] {
        Communicator second(lane);
        work(second);
      }));
  return Pending([state = state_, future] {
    const auto watch = state->observers.guard->watch(
        [&] { return fmt::format("what it started with async() on '{}'", state->name); });
    future->get();
  });
}

// --- the library's collectives ----------------------------------------------------------------------------

void Communicator::collective(Operation operation, Tensor tensor, Reduction reduction, int root) {
  State& s = *state_;
  if (s.guarded()) {
    Envelope mine = s.envelope(operation, tensor);
    mine.reduction = reduction;
    mine.root = root;
    s.agree(mine);
  }
  // What a ring would send: n - 1 of n chunks to gather or to reduce, and both for an all-reduce. A
  // broadcast goes down a chain.
  const int n = s.size(), r = s.rank();
  const auto bytes_without_chunk = [&](int chunk) {
    return tensor.bytes() - part_of(tensor.count(), n, (chunk + n) % n).count * size_of(tensor.type());
  };
  Traffic ring;
  if (n > 1 && (operation == Operation::all_reduce || operation == Operation::reduce_scatter)) {
    ring += {bytes_without_chunk(r), bytes_without_chunk(r + 1), 0, n - 1};
  }
  if (n > 1 && (operation == Operation::all_reduce || operation == Operation::all_gather)) {
    ring += {bytes_without_chunk(r - 1), bytes_without_chunk(r), 0, n - 1};
  }
  if (operation == Operation::broadcast) {
    const int hop = (r - root + n) % n;
    ring += {hop < n - 1 ? tensor.bytes() : 0, hop > 0 ? tensor.bytes() : 0, 0, hop < n - 1 ? 1 : 0};
  }
  const int left = (r - 1 + n) % n;
  if (s.transport->node(left) != s.transport->node(r)) ring.sent_inter_node = ring.sent;
  s.observers.traffic->add({s.name, name_of(operation), true}, ring);
}

namespace {
bool overlap(Tensor a, Tensor b) {
  const std::less<const std::byte*> before;
  return !a.empty() && !b.empty() && before(a.data(), b.data() + b.bytes()) &&
         before(b.data(), a.data() + a.bytes());
}
}  // namespace

void Communicator::all_reduce(Tensor t, Reduction reduction) {
  collective(Operation::all_reduce, t, reduction, -1);
  const auto watch = state_->observers.guard->watch([] { return "the library's all_reduce"; });
  state_->transport->all_reduce(t, reduction);
}

void Communicator::broadcast(Tensor t, int root) {
  state_->check_peer(root);
  collective(Operation::broadcast, t, Reduction::sum, root);
  const auto watch = state_->observers.guard->watch([] { return "the library's broadcast"; });
  state_->transport->broadcast(t, root);
}

void Communicator::all_gather(Tensor part, Tensor whole) {
  const Part place = part_of(whole.count(), size(), rank());
  require(part.count() == place.count, "all_gather: a part of another size");
  require(part.type() == whole.type(), "all_gather: a part of another type");
  require(!overlap(part, whole) || part.data() == whole.part(place.first, place.count).data(),
          "all_gather: a part that lies elsewhere in the whole than where it belongs");
  collective(Operation::all_gather, whole, Reduction::sum, -1);
  const auto watch = state_->observers.guard->watch([] { return "the library's all_gather"; });
  state_->transport->all_gather(part, whole);
}

void Communicator::reduce_scatter(Tensor whole, Tensor part, Reduction reduction) {
  require(part.count() == part_of(whole.count(), size(), rank()).count,
          "reduce_scatter: a part of another size");
  require(part.type() == whole.type(), "reduce_scatter: a part of another type");
  require(!overlap(part, whole), "reduce_scatter: the part lies in the whole");
  collective(Operation::reduce_scatter, whole, reduction, -1);
  const auto watch = state_->observers.guard->watch([] { return "the library's reduce_scatter"; });
  state_->transport->reduce_scatter(whole, part, reduction);
}

void Communicator::end_of_run() {
  if (state_->guarded()) state_->agree(state_->envelope(Operation::end_of_run, Tensor()));
}

// --- the control channel ----------------------------------------------------------------------------------

std::vector<std::vector<std::byte>> Communicator::gather_bytes(std::span<const std::byte> mine) const {
  const auto watch = state_->observers.guard->watch([&] {
    return fmt::format("the others on the control channel of '{}' (hashes, verdicts)", state_->name);
  });
  return state_->transport->all_gather_host(mine);
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
