#pragma once
// What a Communicator holds. Private to common/comm.
#include "common/comm/communicator.hpp"
#include "common/support/error.hpp"

namespace fivecuts {

/// A receive under way. Its data is asked for at once, as without a guard, so that the guard
/// changes nothing in what waits for what; its envelope is compared before anyone is told that the
/// data is there.
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
    fail(fmt::format("rank {} was named as a peer on '{}', whose ranks are 0 to {}", peer, name,
                     size() - 1));
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

  /// Envelopes are small: the library has taken them when start_send returns, or takes them in a
  /// wait.
  std::pair<std::shared_ptr<Envelope>, std::unique_ptr<InFlight>> announce(Operation operation,
                                                                           const Transfer& t) {
    auto e = std::make_shared<Envelope>(envelope(operation, t.tensor));
    auto sent = transport->start_send(std::as_bytes(std::span(e.get(), 1)), t.peer,
                                      Transport::Plane::envelope);
    return {std::move(e), std::move(sent)};
  }

  std::shared_ptr<Receive> expect(const Transfer& t) {
    auto receive = std::make_shared<Receive>(Receive{t, {}, nullptr});
    receive->announced =
        transport->start_receive(std::as_writable_bytes(std::span(&receive->envelope, 1)), t.peer,
                                 Transport::Plane::envelope);
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
    throw GuardError(fmt::format("rank {} of '{}' waits for {} x {} from rank {}, which came to {}",
                                 rank(), name, t.tensor.count(), fivecuts::name_of(t.tensor.type()),
                                 t.peer, describe(receive.envelope)));
  }
};

}  // namespace fivecuts
