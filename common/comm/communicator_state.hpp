#pragma once
// What a Communicator holds. Private to common/comm.
#include <algorithm>

#include "common/comm/communicator.hpp"
#include "common/support/error.hpp"

namespace fivecuts {

/// A receive under way. Its data is asked for at once, as without a guard, so that the guard
/// changes nothing in what waits for what; its envelope is compared before anyone is told that the
/// data is there.
struct Communicator::Receive {
  Transfer transfer;
  Envelope envelope;  // what was announced; its time is the departure
  std::unique_ptr<InFlight> announced;
};

/// A send under way.
struct Communicator::Send {
  Transfer transfer;
  Envelope envelope;
  double done = 0;  // on the clock: when all of it has left
  std::unique_ptr<InFlight> announced;
};

struct Communicator::State {
  std::string name;
  std::unique_ptr<Transport> transport;
  Observers observers;
  std::shared_ptr<State> lane;   // the second lane; null on the lane itself
  std::vector<int> world_ranks;  // of this communicator's ranks
  std::uint64_t sequence = 0;

  bool guarded() const { return observers.guard->enabled(); }
  /// Whether an envelope goes ahead of each message: for the guard, for the clock, or as all there
  /// is of it.
  bool announces() const { return guarded() || observers.clock->on() || dry(); }
  bool dry() const { return observers.device->dry(); }
  int rank() const { return transport->rank(); }
  int size() const { return transport->size(); }

  void check_peer(int peer) const {
    if (peer >= 0 && peer < size()) return;
    fail(fmt::format("rank {} was named as a peer on '{}', whose ranks are 0 to {}", peer, name,
                     size() - 1));
  }

  bool leaves_node(int peer) const {
    const Clock& clock = *observers.clock;
    const std::int64_t per_node = clock.on() ? clock.cluster().ranks_per_node : 0;
    if (per_node == 0) return transport->node(peer) != transport->node(rank());
    const auto node = [&](int r) { return world_ranks[static_cast<std::size_t>(r)] / per_node; };
    return node(peer) != node(rank());
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
    Traffic traffic;
    (sends ? traffic.sent : traffic.received) = t.tensor.bytes();
    traffic.messages = sends ? 1 : 0;
    traffic.sent_inter_node = sends && leaves_node(t.peer) ? t.tensor.bytes() : 0;
    observers.traffic->add({name, name_of(operation)}, traffic);
    if (observers.verbose && sends) {
      std::fprintf(stderr, "rank %d of '%s': %s of %lld x %s to rank %d\n", rank(), name.c_str(),
                   name_of(operation), static_cast<long long>(t.tensor.count()),
                   fivecuts::name_of(t.tensor.type()), t.peer);
    }
  }

  /// A send under way: counted, on the clock, and announced. Envelopes are small: the library has
  /// taken them when start_send returns, or takes them in a wait.
  std::shared_ptr<Send> announce(Operation operation, const Transfer& t) {
    auto send = std::make_shared<Send>(Send{t, envelope(operation, t.tensor), 0, nullptr});
    count(operation, t);
    if (t.peer != rank()) {
      const auto [departs, done] = observers.clock->send(t.tensor.bytes(), leaves_node(t.peer));
      send->envelope.time = departs;
      send->done = done;
    } else {
      send->envelope.time = send->done = observers.clock->now();
    }
    if (!announces()) return send;
    send->announced = transport->start_send(std::as_bytes(std::span(&send->envelope, 1)), t.peer,
                                            Transport::Plane::envelope);
    return send;
  }

  std::shared_ptr<Receive> expect(const Transfer& t) {
    auto receive = std::make_shared<Receive>(Receive{t, {}, nullptr});
    if (!announces()) return receive;
    receive->announced =
        transport->start_receive(std::as_writable_bytes(std::span(&receive->envelope, 1)), t.peer,
                                 Transport::Plane::envelope);
    return receive;
  }

  std::string wanted(const Transfer& t) const {
    return fmt::format("{} x {} from rank {} on '{}'", t.tensor.count(),
                       fivecuts::name_of(t.tensor.type()), t.peer, name);
  }

  /// Waits for the envelope of a receive and compares it. Returns when the message is there, on the
  /// clock.
  Clock::Received accept(Receive& receive) const {
    if (!receive.announced) return {};
    const Transfer& t = receive.transfer;
    const auto watch = observers.guard->watch([&] { return "a message: " + wanted(t); });
    receive.announced->wait();
    const Envelope& e = receive.envelope;
    if (!fits(e, t.tensor.count(), t.tensor.type())) {
      throw GuardError(fmt::format(
          "rank {} of '{}' waits for {} x {} from rank {}, which came to {}", rank(), name,
          t.tensor.count(), fivecuts::name_of(t.tensor.type()), t.peer, describe(e)));
    }
    if (t.peer == rank()) return {e.time, e.time};
    return observers.clock->receive(e.time, t.tensor.bytes(), leaves_node(t.peer));
  }

  /// Nothing, where there are no numbers to move.
  std::unique_ptr<InFlight> start(std::span<const Transfer> transfers) const {
    return dry() ? nullptr : transport->start(transfers);
  }

  /// On the clock: the caller goes on at `until`. `starts`: when the last message it waits for
  /// begins to come in.
  void wait_until(double until, double starts, const char* what, std::int64_t bytes) const {
    const double now = observers.clock->now();
    if (!(until > now)) return;  // it was there before anyone asked
    Event event;
    event.kind = Event::Kind::message;
    event.name = what;
    event.waited = std::clamp(starts - now, 0.0, until - now);
    event.bytes = bytes;
    event.communicator = name;
    observers.clock->wait_until(until, std::move(event));
  }
};

}  // namespace fivecuts
