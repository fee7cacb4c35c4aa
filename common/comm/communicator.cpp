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

Communicator::Communicator(std::string name, std::unique_ptr<Transport> transport, int world_rank,
                           Observers observers) {
  const auto watch =
      observers.guard->watch([&] { return fmt::format("the others to form '{}'", name); });
  if (world_rank < 0) world_rank = transport->rank();
  std::vector<int> world_ranks;
  for (const auto& bytes : transport->all_gather_host(std::as_bytes(std::span(&world_rank, 1)))) {
    std::memcpy(&world_ranks.emplace_back(), bytes.data(), sizeof(int));
  }
  const auto lane_of = [&](std::unique_ptr<Transport> over) {
    auto state = std::make_shared<State>();
    state->name = name;
    state->transport = std::move(over);
    state->observers = observers;
    state->world_ranks = world_ranks;
    return state;
  };
  std::unique_ptr<Transport> second = transport->split(0, name + ".async");
  state_ = lane_of(std::move(transport));
  state_->lane = lane_of(std::move(second));
}

const std::string& Communicator::name() const { return state_->name; }
int Communicator::rank() const { return state_->rank(); }
int Communicator::size() const { return state_->size(); }
Transport& Communicator::transport() const { return *state_->transport; }
bool Communicator::leaves_node(int peer) const { return state_->leaves_node(peer); }

Communicator Communicator::split(const std::string& name,
                                 const std::function<int(int rank)>& group_of) const {
  if (state_->guarded()) {
    Envelope mine = state_->envelope(Operation::split, Tensor());
    std::strncpy(mine.detail, name.c_str(), sizeof mine.detail - 1);
    agree(*state_->transport, *state_->observers.guard, state_->name, mine);
  }
  const int group = group_of(rank());
  require(group >= 0, "a group is numbered 0 or above");
  const int world_rank = state_->world_ranks[static_cast<std::size_t>(rank())];
  const auto watch =
      state_->observers.guard->watch([&] { return fmt::format("the others to form '{}'", name); });
  return {name, state_->transport->split(group, name), world_rank, state_->observers};
}

// --- messages ---

void Communicator::send(int peer, Tensor tensor) { isend(peer, tensor).wait(); }

void Communicator::receive(int peer, Tensor tensor) { ireceive(peer, tensor).wait(); }

Pending Communicator::isend(int peer, Tensor tensor) {
  State& s = *state_;
  s.check_peer(peer);
  const Transfer transfer = to(peer, tensor);
  const std::shared_ptr<Send> send = s.announce(Operation::send, transfer);
  std::shared_ptr<InFlight> data = s.start(std::span(&transfer, 1));
  return Pending([state = state_, send, data] {
    const Transfer& t = send->transfer;
    const auto watch = state->observers.guard->watch([&] {
      return fmt::format("rank {} to receive {} x {} on '{}'", t.peer, t.tensor.count(),
                         name_of(t.tensor.type()), state->name);
    });
    if (send->announced) send->announced->wait();
    if (data) data->wait();
    state->wait_until(send->done, 0, "send", t.tensor.bytes());
  });
}

Pending Communicator::ireceive(int peer, Tensor tensor) {
  State& s = *state_;
  s.check_peer(peer);
  const Transfer transfer = from(peer, tensor);
  const std::shared_ptr<Receive> receive = s.expect(transfer);
  std::shared_ptr<InFlight> data = s.start(std::span(&transfer, 1));
  return Pending([state = state_, transfer, receive, data] {
    const auto [starts, done] = state->accept(*receive);
    const auto watch =
        state->observers.guard->watch([&] { return "the rest of " + state->wanted(transfer); });
    if (data) data->wait();
    state->count(Operation::send, transfer);
    state->wait_until(done, starts, "receive", transfer.tensor.bytes());
  });
}

void Communicator::exchange_all(std::span<const Transfer> transfers) {
  State& s = *state_;
  for (const Transfer& t : transfers) s.check_peer(t.peer);
  std::vector<std::shared_ptr<Send>> sends;
  std::vector<std::shared_ptr<Receive>> receives;
  std::int64_t bytes = 0;
  for (const Transfer& t : transfers) {
    bytes += t.tensor.bytes();
    if (t.kind == Transfer::Kind::send) {
      sends.push_back(s.announce(Operation::exchange, t));
    } else {
      receives.push_back(s.expect(t));
    }
  }
  const auto data = [&] {
    const auto begins = s.observers.guard->watch(
        [&] { return fmt::format("the others to begin an exchange on '{}'", s.name); });
    return s.start(transfers);
  }();
  double done = 0, starts = 0;
  for (const auto& receive : receives) {
    const Clock::Received received = s.accept(*receive);
    done = std::max(done, received.done);
    starts = std::max(starts, received.starts);
    s.count(Operation::exchange, receive->transfer);
  }
  const auto watch = s.observers.guard->watch(
      [&] { return fmt::format("an exchange on '{}' to complete", s.name); });
  if (data) data->wait();
  for (const auto& send : sends) {
    if (send->announced) send->announced->wait();
    done = std::max(done, send->done);
  }
  s.wait_until(done, starts, "exchange", bytes);
}

Pending Communicator::async_work(std::function<void(Communicator&)> work) {
  require(state_->lane != nullptr, "async() inside async()");
  struct End {
    double time = 0;  // on the clock
    Device::Mark mark;
  };
  Clock& clock = *state_->observers.clock;
  Device& device = *state_->observers.device;
  auto end = std::make_shared<End>();
  auto future = std::make_shared<std::future<void>>(
      state_->observers.stream->run([lane = state_->lane, work = std::move(work), &clock, &device,
                                     issued = clock.now(), from = device.mark(), end]() mutable {
        clock.idle_until(issued);
        device.follow(from);
        Communicator second(lane);
        work(second);
        work = nullptr;  // what it holds is given back in the order of this lane
        *end = {clock.now(), device.mark()};
      }));
  return Pending([state = state_, &device, future, end] {
    const auto watch = state->observers.guard->watch(
        [&] { return fmt::format("what it started with async() on '{}'", state->name); });
    future->get();
    device.follow(end->mark);
    state->wait_until(end->time, end->time, "wait for async", 0);
  });
}

}  // namespace fivecuts
