#include "common/comm/shared_buffer.hpp"

#include "common/comm/agreement.hpp"
#include "common/comm/communicator_state.hpp"

namespace fivecuts {

bool SharedBuffer::possible(const Communicator& comm) {
  const Communicator::State& s = *comm.state_;
  const Device& device = *s.observers.device;
  for (int r = 0; r < s.size(); ++r) {
    if (s.leaves_node(r)) return false;
  }
  return device.dry() || (device.on_host() && s.transport->shares_memory());
}

SharedBuffer::SharedBuffer(const Communicator& comm, Category category, std::int64_t rows,
                           std::int64_t cols, DType type)
    : state_(comm.state_) {
  Communicator::State& s = *state_;
  Device& device = *s.observers.device;
  if (!possible(comm)) {
    fail(
        fmt::format("the ranks of '{}' cannot read each other's memory: that takes one node, a "
                    "transport that shares its memory, and --device cpu",
                    s.name));
  }
  buffer_ = Buffer(device, category, rows, cols, type, [&](std::int64_t bytes) {
    if (s.guarded()) {
      const Tensor shape(device, nullptr, type, rows, cols);
      agree(*s.transport, *s.observers.guard, s.name, s.envelope(Operation::shared_memory, shape));
    }
    const auto watch = s.observers.guard->watch(
        [&] { return fmt::format("the others to share memory on '{}'", s.name); });
    memory_ = s.transport->share(static_cast<std::size_t>(bytes));
    return std::shared_ptr<std::byte>(memory_, memory_->of(s.rank()));
  });
  tensor_ = buffer_;
}

int SharedBuffer::rank() const { return state_->rank(); }
int SharedBuffer::ranks() const { return state_->size(); }

bool SharedBuffer::holds(Tensor x) const {
  const std::less_equal<const std::byte*> up_to;
  return x.device() != nullptr && x.device() == tensor_.device() &&
         up_to(tensor_.data(), x.data()) &&
         up_to(x.data() + x.bytes(), tensor_.data() + tensor_.bytes());
}

void SharedBuffer::meet(Tensor x, Reduction how) {
  require(holds(x), "a meeting over a tensor that is not in the memory that is shared");
  Communicator::State& s = *state_;
  double latest = 0;
  if (s.announces()) {
    Envelope mine = s.envelope(Operation::shared_memory, x);
    mine.reduction = how;
    mine.time = s.observers.clock->now();
    fmt::format_to_n(mine.detail, sizeof mine.detail - 1, "byte {}", x.data() - tensor_.data());
    latest = agree(*s.transport, *s.observers.guard, s.name, mine);
  }
  if (memory_) {
    const auto watch = s.observers.guard->watch(
        [&] { return fmt::format("the others to meet in the memory shared on '{}'", s.name); });
    memory_->barrier();
  }
  if (!s.observers.clock->on()) return;
  const double seen = latest + s.observers.clock->cluster().link(false).latency;
  s.wait_until(seen, latest, "meet", 0);
}

std::span<const Tensor> SharedBuffer::everywhere(Tensor x) {
  require(holds(x), "a tensor that is not in the memory that is shared");
  const Communicator::State& s = *state_;
  const std::int64_t others = (s.size() - 1) * x.bytes();
  s.observers.traffic->add({s.name, name_of(Operation::shared_memory)}, {others, others, 0, 0});
  if (Clock& clock = *s.observers.clock; clock.on()) {
    const double cross = static_cast<double>(others) / clock.cluster().link(false).bandwidth;
    s.wait_until(clock.now() + 2 * cross, 0, "read, write", 2 * others);
  }
  places_.assign(static_cast<std::size_t>(s.size()), x);
  if (!memory_) return places_;
  for (int r = 0; r < s.size(); ++r) {
    std::byte* const there = memory_->of(r) + (x.data() - tensor_.data());
    places_[static_cast<std::size_t>(r)] = {*x.device(), there, x.type(), x.rows(), x.cols()};
  }
  return places_;
}

}  // namespace fivecuts
