#include "common/comm/transport_nccl.hpp"

#include <nccl.h>

#include <algorithm>
#include <cstring>
#include <deque>

#include "common/comm/transport_over_host.hpp"

namespace fivecuts {
namespace {

void check_nccl(ncclResult_t code, const char* expression,
                std::source_location where = std::source_location::current()) {
  if (code == ncclSuccess) return;
  std::string text = std::string(expression) + " failed: " + ncclGetErrorString(code);
  if (const char* more = ncclGetLastError(nullptr); more != nullptr && *more != '\0') {
    text = text + ": " + more;
  }
  fail(text, where);
}
#define FIVECUTS_NCCL_CALL(call) check_nccl(call, #call)

ncclDataType_t type_of(const Tensor& t) {
  switch (t.type()) {
    case DType::f32:
      return ncclFloat32;
    case DType::i64:
      return ncclInt64;
    case DType::bf16:
      return ncclBfloat16;
  }
  fail("NCCL has no such type");
}

ncclRedOp_t operation(Reduction reduction) {
  return reduction == Reduction::sum ? ncclSum : ncclMax;
}

/// "24 x f32"
std::string amount(const Tensor& t) {
  return std::to_string(t.count()) + " x " + fivecuts::name_of(t.type());
}

std::size_t count(const Tensor& t) { return static_cast<std::size_t>(t.count()); }

/// Older versions of NCCL have no place for it.
template <class Config>
void give_name(Config& config, const char* name) {
  if constexpr (requires { config.commName; }) config.commName = name;
}

/// What a rank's communicators have given to its GPU, all of them, oldest first.
class Launches {
 public:
  explicit Launches(CudaBackend& gpu) : gpu_(gpu) {}

  void enter(ncclComm_t comm) {
    const std::lock_guard lock(mutex_);
    comms_.push_back(comm);
  }
  void leave(ncclComm_t comm) {
    const std::lock_guard lock(mutex_);
    std::erase(comms_, comm);
  }
  /// `what` was launched on the calling thread's lane.
  void add(std::string what) {
    constexpr std::size_t many = 256;
    const std::lock_guard lock(mutex_);
    if (under_way_.size() > many) forget_done();
    under_way_.push_back({gpu_.mark(), std::move(what)});
  }
  /// What the GPU waits for, the oldest of it; throws if a communicator broke.
  std::string oldest() {
    const std::lock_guard lock(mutex_);
    for (const ncclComm_t comm : comms_) {
      ncclResult_t error = ncclSuccess;
      FIVECUTS_NCCL_CALL(ncclCommGetAsyncError(comm, &error));
      check_nccl(error, "communication under way");
    }
    forget_done();
    return under_way_.empty() ? "the device to finish what it was given" : under_way_.front().what;
  }

 private:
  struct Launch {
    Device::Mark done;
    std::string what;
  };
  void forget_done() {
    while (!under_way_.empty() && CudaBackend::reached(under_way_.front().done)) {
      under_way_.pop_front();
    }
  }
  CudaBackend& gpu_;
  std::mutex mutex_;
  std::vector<ncclComm_t> comms_;
  std::deque<Launch> under_way_;
};

/// A communicator of NCCL, from its start to its end, and what was started on it and not launched.
class Group {
 public:
  /// make(comm, config) makes the communicator; its name, which NCCL's logs and tools show, stays.
  template <class F>
  Group(std::string name, CudaBackend& on, std::shared_ptr<Launches> all, const F& make)
      : gpu(on), launches(std::move(all)), name_(std::move(name)) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    give_name(config, name_.c_str());
    gpu.stream();  // makes the GPU this thread's
    check_nccl(make(&comm_, &config), "making a communicator of NCCL");
    meet();
    launches->enter(comm_);
  }
  Group(const Group&) = delete;
  // All ranks come here in the same order, and wait for what is under way.
  ~Group() {
    launches->leave(comm_);
    if (std::uncaught_exceptions() > 0) return;  // then the process ends, without waiting for peers
    static_cast<void>(ncclCommFinalize(comm_));
    static_cast<void>(ncclCommDestroy(comm_));
  }
  ncclComm_t get() const { return comm_; }
  const std::string& name() const { return name_; }

  void queue(std::span<const Transfer> transfers) {
    for (const Transfer& t : transfers) {
      if (!t.tensor.empty()) queued_.push_back(t);  // NCCL too needs nothing for no elements
    }
  }

  /// All that is queued, as one group: NCCL matches messages in the order of their launches, and
  /// only those of one group go on together.
  void launch() {
    if (queued_.empty()) return;
    FIVECUTS_NCCL_CALL(ncclGroupStart());
    for (const auto& [kind, peer, t] : queued_) {
      if (kind == Transfer::Kind::send) {
        FIVECUTS_NCCL_CALL(ncclSend(t.data(), count(t), type_of(t), peer, comm_, gpu.stream()));
      } else {
        FIVECUTS_NCCL_CALL(ncclRecv(t.data(), count(t), type_of(t), peer, comm_, gpu.stream()));
      }
    }
    FIVECUTS_NCCL_CALL(ncclGroupEnd());
    launches->add(said(queued_));
    queued_.clear();
  }

  CudaBackend& gpu;
  const std::shared_ptr<Launches> launches;

 private:
  /// A byte from each rank to each. NCCL connects two ranks at their first message, in a call that
  /// waits for both: after this no later call does, whoever sends first. Its price is memory for
  /// all pairs.
  void meet() {
    int n = 0, me = 0;
    FIVECUTS_NCCL_CALL(ncclCommCount(comm_, &n));
    FIVECUTS_NCCL_CALL(ncclCommUserRank(comm_, &me));
    if (n == 1) return;
    const auto bytes = static_cast<std::size_t>(2 * n);
    std::byte* at = nullptr;
    try {
      at = static_cast<std::byte*>(gpu.allocate(bytes));
    } catch (const std::bad_alloc&) {
      throw OutOfMemory("out of memory: the GPU has none left to start NCCL with");
    }
    FIVECUTS_CUDA(cudaMemsetAsync(at, 0, bytes, gpu.stream()));
    FIVECUTS_NCCL_CALL(ncclGroupStart());
    for (int peer = 0; peer < n; ++peer) {
      if (peer == me) continue;
      FIVECUTS_NCCL_CALL(ncclSend(at + peer, 1, ncclInt8, peer, comm_, gpu.stream()));
      FIVECUTS_NCCL_CALL(ncclRecv(at + n + peer, 1, ncclInt8, peer, comm_, gpu.stream()));
    }
    FIVECUTS_NCCL_CALL(ncclGroupEnd());
    gpu.release(at);
  }

  std::string said(std::span<const Transfer> transfers) const {
    std::string all;
    for (const auto& [kind, peer, t] : transfers) {
      const std::string rank = "rank " + std::to_string(peer);
      all += all.empty() ? "" : ", and ";
      all += kind == Transfer::Kind::send ? rank + " to receive " + amount(t)
                                          : "a message: " + amount(t) + " from " + rank;
    }
    return all + " on '" + name_ + "'";
  }

  const std::string name_;
  ncclComm_t comm_ = nullptr;
  std::vector<Transfer> queued_;
};

class Launched final : public InFlight {
 public:
  explicit Launched(std::shared_ptr<Group> group) : group_(std::move(group)) {}
  void wait() override { group_->launch(); }
  bool done() override {
    group_->launch();
    return true;  // as far as the lane is concerned: what comes next comes after it
  }

 private:
  std::shared_ptr<Group> group_;
};

class NcclTransport final : public TransportOverHost {
 public:
  NcclTransport(std::unique_ptr<Transport> host, std::shared_ptr<Group> group)
      : TransportOverHost(std::move(host)), group_(std::move(group)) {}

  const char* name() const override { return "nccl"; }
  std::string under_way() override { return group_->launches->oldest(); }

  std::unique_ptr<Transport> split(int number, const std::string& called) override {
    group_->launch();
    group_->gpu.synchronize();  // nothing may be under way on the communicator that is split
    auto group = std::make_shared<Group>(called, group_->gpu, group_->launches,
                                         [&](ncclComm_t* part, ncclConfig_t* config) {
                                           return ncclCommSplit(group_->get(), number, rank(),
                                                                part, config);
                                         });
    return std::make_unique<NcclTransport>(host_->split(number, called), std::move(group));
  }

  // An exchange goes out at once. Single messages wait for one another, until the first of them is
  // waited for: each launched alone, a send and then a receive would deadlock with the peer's.
  std::unique_ptr<InFlight> start(std::span<const Transfer> transfers) override {
    group_->queue(transfers);
    if (transfers.size() > 1) group_->launch();
    return std::make_unique<Launched>(group_);
  }

  void all_reduce(Tensor t, Reduction reduction) override {
    const cudaStream_t stream = begin();
    FIVECUTS_NCCL_CALL(ncclAllReduce(t.data(), t.data(), count(t), type_of(t),
                                     operation(reduction), group_->get(), stream));
    launched("all_reduce", t);
  }

  void broadcast(Tensor t, int root) override {
    const cudaStream_t stream = begin();
    FIVECUTS_NCCL_CALL(ncclBroadcast(t.data(), t.data(), count(t), type_of(t), root,
                                     group_->get(), stream));
    launched("broadcast", t);
  }

  // NCCL's own has parts of one size only. Those of two sizes are as many broadcasts, in a group.
  void all_gather(Tensor part, Tensor whole) override {
    const cudaStream_t stream = begin();
    if (whole.count() % size() == 0) {
      FIVECUTS_NCCL_CALL(ncclAllGather(part.data(), whole.data(), count(part), type_of(whole),
                                       group_->get(), stream));
    } else {
      each_part(whole, [&](int r, Tensor to) {
        return ncclBroadcast(part.data(), to.data(), count(to), type_of(to), r, group_->get(),
                             stream);
      });
    }
    launched("all_gather", whole);
  }

  void reduce_scatter(Tensor whole, Tensor part, Reduction reduction) override {
    const cudaStream_t stream = begin();
    if (whole.count() % size() == 0) {
      FIVECUTS_NCCL_CALL(ncclReduceScatter(whole.data(), part.data(), count(part), type_of(whole),
                                           operation(reduction), group_->get(), stream));
    } else {
      each_part(whole, [&](int r, Tensor from) {
        return ncclReduce(from.data(), part.data(), count(from), type_of(from),
                          operation(reduction), r, group_->get(), stream);
      });
    }
    launched("reduce_scatter", whole);
  }

 private:
  /// What was started before comes before. Returns the lane's stream.
  cudaStream_t begin() {
    group_->launch();
    return group_->gpu.stream();
  }

  void launched(const char* what, const Tensor& t) {
    group_->launches->add(std::string("the others at ") + what + " of " + amount(t) + " on '" +
                          group_->name() + "'");
  }

  /// call(rank, part) for each part that has elements, in one group.
  template <class F>
  void each_part(Tensor whole, const F& call) {
    FIVECUTS_NCCL_CALL(ncclGroupStart());
    for (int r = 0; r < size(); ++r) {
      const Part place = part_of(whole.count(), size(), r);
      if (place.count > 0) check_nccl(call(r, whole.part(place.first, place.count)), "NCCL");
    }
    FIVECUTS_NCCL_CALL(ncclGroupEnd());
  }

  std::shared_ptr<Group> group_;
};

}  // namespace

std::unique_ptr<Transport> nccl_transport(std::unique_ptr<Transport> host, CudaBackend& gpu) {
  ncclUniqueId id = {};
  if (host->rank() == 0) FIVECUTS_NCCL_CALL(ncclGetUniqueId(&id));
  const auto ids = host->all_gather_host(std::as_bytes(std::span(&id, 1)));
  std::memcpy(&id, ids.front().data(), sizeof id);
  auto group = std::make_shared<Group>(
      "world", gpu, std::make_shared<Launches>(gpu), [&](ncclComm_t* comm, ncclConfig_t* config) {
        return ncclCommInitRankConfig(comm, host->size(), id, host->rank(), config);
      });
  return std::make_unique<NcclTransport>(std::move(host), std::move(group));
}

}  // namespace fivecuts
