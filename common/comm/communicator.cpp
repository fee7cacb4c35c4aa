// Groups and messages.
#include "common/comm/communicator.hpp"

#include <cstring>
#include <exception>

#include "common/comm/agreement.hpp"
#include "common/comm/communicator_state.hpp"

namespace fivecuts {

// --- handles ---

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

// --- groups ---

Communicator::Communicator(std::string name, std::unique_ptr<Transport> transport,
                           Observers observers) {
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
    agree(*state_->transport, *state_->observers.guard, state_->name, mine);
  }
  const int group = group_of(rank());
  require(group >= 0, "a group is numbered 0 or above");
  return {name, state_->transport->split(group), state_->observers};
}

// --- messages ---

void Communicator::send(int peer, Tensor tensor) { isend(peer, tensor).wait(); }

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
  return Pending([state = state_, transfer, envelope, announced, data] {
    const auto watch = state->observers.guard->watch([&] {
      return fmt::format("rank {} to receive {} x {} on '{}'", transfer.peer,
                         transfer.tensor.count(), name_of(transfer.tensor.type()), state->name);
    });
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

}  // namespace fivecuts
