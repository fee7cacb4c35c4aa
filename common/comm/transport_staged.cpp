#include "common/comm/transport_staged.hpp"

#include "common/comm/transport_over_host.hpp"
#include "common/compute/backend.hpp"
#include "common/support/units.hpp"

namespace fivecuts {
namespace {

/// Host memory beside a device's, of all groups of a rank.
struct Stage {
  explicit Stage(Device& of) : device(of), pinned(&of.backend()->host_memory()) {}
  Device& device;
  CachingAllocator pinned;
  MemoryLedger not_counted;
  Device host{not_counted};  // whose the copies are
};

/// A tensor's place on the host while it lives.
class Copy {
 public:
  Copy(std::shared_ptr<Stage> stage, Tensor of) : stage_(std::move(stage)), of_(of) {
    try {
      block_ = stage_->pinned.allocate(static_cast<std::size_t>(of.bytes()));
    } catch (const std::bad_alloc&) {
      throw OutOfMemory(
          fmt::format("out of memory: the machine has no {} of pinned memory for a "
                      "message by way of the host",
                      show_bytes(static_cast<double>(of.bytes()))));
    }
  }
  Copy(Copy&& other) noexcept
      : stage_(std::move(other.stage_)), of_(other.of_), block_(std::exchange(other.block_, {})) {}
  Copy& operator=(Copy&&) = delete;
  ~Copy() {
    if (stage_) stage_->pinned.release(block_);
  }
  Tensor tensor() const {
    auto* const data = static_cast<std::byte*>(block_.data);
    return {stage_->host, data, of_.type(), of_.rows(), of_.cols()};
  }
  Copy&& bring() && {  ///< the device's numbers to the host
    backend().copy_out(of_, block_.data);
    return std::move(*this);
  }
  void take_back() const {  ///< the host's to the device
    if (!of_.empty()) backend().copy_in(block_.data, of_);
  }

 private:
  Backend& backend() const { return *stage_->device.backend(); }
  std::shared_ptr<Stage> stage_;
  Tensor of_;
  CachingAllocator::Block block_;
};

class StagedMessages final : public InFlight {
 public:
  StagedMessages(std::vector<Copy> sent, std::vector<Copy> received,
                 std::unique_ptr<InFlight> on_host)
      : sent_(std::move(sent)), received_(std::move(received)), on_host_(std::move(on_host)) {}
  void wait() override {
    if (on_host_) on_host_->wait();
    finish();
  }
  bool done() override {
    if (on_host_ && !on_host_->done()) return false;
    finish();
    return true;
  }

 private:
  void finish() {
    on_host_.reset();
    for (const Copy& copy : received_) copy.take_back();
    received_.clear();
    sent_.clear();
  }
  std::vector<Copy> sent_, received_;
  std::unique_ptr<InFlight> on_host_;
};

class StagedTransport final : public TransportOverHost {
 public:
  StagedTransport(std::unique_ptr<Transport> host, std::shared_ptr<Stage> stage)
      : TransportOverHost(std::move(host)), stage_(std::move(stage)) {}

  const char* name() const override { return "staged"; }
  std::unique_ptr<Transport> split(int group, const std::string& called) override {
    return std::make_unique<StagedTransport>(host_->split(group, called), stage_);
  }

  std::unique_ptr<InFlight> start(std::span<const Transfer> transfers) override {
    std::vector<Copy> sent, received;
    std::vector<Transfer> on_host;
    for (const auto& [kind, peer, tensor] : transfers) {
      const bool sends = kind == Transfer::Kind::send;
      Copy& copy = sends ? sent.emplace_back(brought(tensor)) : received.emplace_back(room(tensor));
      on_host.push_back({kind, peer, copy.tensor()});
    }
    auto messages = host_->start(on_host);
    return std::make_unique<StagedMessages>(std::move(sent), std::move(received),
                                            std::move(messages));
  }

  void all_reduce(Tensor t, Reduction reduction) override {
    const Copy copy = brought(t);
    host_->all_reduce(copy.tensor(), reduction);
    copy.take_back();
  }

  void broadcast(Tensor t, int root) override {
    const Copy copy = rank() == root ? brought(t) : room(t);
    host_->broadcast(copy.tensor(), root);
    if (rank() != root) copy.take_back();
  }

  void all_gather(Tensor part, Tensor whole) override {
    const Copy mine = brought(part), all = room(whole);
    host_->all_gather(mine.tensor(), all.tensor());
    all.take_back();
  }

  void reduce_scatter(Tensor whole, Tensor part, Reduction reduction) override {
    const Copy all = brought(whole), mine = room(part);
    host_->reduce_scatter(all.tensor(), mine.tensor(), reduction);
    mine.take_back();
  }

 private:
  Copy room(Tensor of) const { return {stage_, of}; }
  Copy brought(Tensor of) const { return room(of).bring(); }

  std::shared_ptr<Stage> stage_;
};

}  // namespace

std::unique_ptr<Transport> staged_transport(std::unique_ptr<Transport> host, Device& device) {
  return std::make_unique<StagedTransport>(std::move(host), std::make_shared<Stage>(device));
}

}  // namespace fivecuts
