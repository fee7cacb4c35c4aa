#pragma once
// A named group of ranks that work together: messages, groups of them, the library's collectives.
// Everything sent is counted in the traffic ledger and checked by the guard.
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "common/comm/guard.hpp"
#include "common/comm/stream.hpp"
#include "common/comm/transport.hpp"
#include "common/observe/clock.hpp"
#include "common/observe/traffic_ledger.hpp"

namespace fivecuts {

/// Who looks on. They belong to the rank's Context and outlive its communicators.
struct Observers {
  TrafficLedger* traffic;
  Guard* guard;
  CommStream* stream;
  Clock* clock;
  Device* device;        ///< on `meta` tensors have no numbers: messages are envelopes only
  bool verbose = false;  ///< one line a message
};

/// Work under way. `wait()` ends it and throws what went wrong in it; a handle that goes out of
/// scope waits too, unless an exception is passing: then the run ends anyway. The handle keeps
/// alive what was moved into async(); a Tensor is a view, whose memory must outlive the work.
class [[nodiscard]] Pending {
 public:
  Pending() = default;
  explicit Pending(std::function<void()> wait) : wait_(std::move(wait)) {}
  Pending(Pending&& other) noexcept : wait_(std::exchange(other.wait_, nullptr)) {}
  Pending& operator=(Pending&& other) noexcept(false);
  ~Pending() noexcept(false);
  void wait();

 private:
  std::function<void()> wait_;
};

class Communicator {
 public:
  /// Collective. A second lane over the same ranks is made for async().
  Communicator(std::string name, std::unique_ptr<Transport> transport, Observers observers)
      : Communicator(std::move(name), std::move(transport), -1, observers) {}

  const std::string& name() const;
  int rank() const;  ///< of this rank, 0 .. size() - 1
  int size() const;
  Transport& transport() const;
  /// True if a message to `peer` leaves the node: the cluster's, or the real one if it has none.
  bool leaves_node(int peer) const;

  /// Collective. The ranks for which `group_of` (a pure function, the same everywhere) gives the
  /// same number >= 0 form a communicator of their own, in the same order; returned is the
  /// caller's.
  Communicator split(const std::string& name, const std::function<int(int rank)>& group_of) const;

  // --- messages ---
  // Ranks are those of this communicator; count and type must match on both sides. Messages between
  // two ranks, and the collectives of both, come in one order (NCCL's rule): what was sent before a
  // collective is received before it. On a GPU over NCCL, messages that isend() and ireceive()
  // started go out together when the first of them is waited for, and what is computed next comes
  // after all of them: a receive whose message depends on later work of this rank is to be started
  // after that work.
  void send(int peer, Tensor tensor);         ///< back when `tensor` may be changed again
  void receive(int peer, Tensor tensor);      ///< back when `tensor` holds the message
  Pending isend(int peer, Tensor tensor);     ///< at once; `tensor` must stay until wait()
  Pending ireceive(int peer, Tensor tensor);  ///< likewise
  /// Sends and receives as one operation, none waiting for another: exchange(to(1, a), from(3, b)).
  template <class... Transfers>
  void exchange(const Transfers&... transfers) {
    const Transfer all[] = {transfers...};
    exchange_all(all);
  }
  void exchange_all(std::span<const Transfer> transfers);

  /// Runs f(communicator) on the rank's communication stream while the caller goes on;
  /// `communicator` is this one's second lane, whose messages never mix with the caller's.
  /// Functions run in the order in which they were given, which must be the same on all ranks. Move
  /// buffers into `f` to keep them alive. A GPU runs them beside what the caller computes, each
  /// after what the caller had asked for when it gave it, and wait() is when the caller's lane goes
  /// on after it: the host need not wait.
  template <class F>
  Pending async(F f) {
    auto work = std::make_shared<F>(std::move(f));  // shared, so that f may hold what only moves
    return async_work([work](Communicator& lane) { (*work)(lane); });
  }

  // --- the library's collectives. Charged as a ring and printed `modelled` ---
  void all_reduce(Tensor in_place, Reduction reduction = Reduction::sum);
  void broadcast(Tensor in_place, int root);
  /// Rank r's part is part_of(whole.count(), size(), r), apart from the whole or in its place
  /// there.
  void all_gather(Tensor part, Tensor whole);
  /// The part lies outside the whole.
  void reduce_scatter(Tensor whole, Tensor part, Reduction reduction = Reduction::sum);

  // --- the control channel: golden data, hashes and verdicts; seen by no observer ---
  void barrier() const;
  /// Rank 0 does `work`, which may take long, and the others wait for it without a time limit. What
  /// it returns is the same text on all. Its exceptions are rank 0's own.
  std::string on_rank_0(const std::function<std::string()>& work) const;
  /// The same where every rank has work. What each returned, on all.
  std::vector<std::string> on_all_ranks(const std::function<std::string()>& work) const;
  bool all_true(bool mine) const;  ///< the same answer on every rank
  template <class T>
  std::vector<T> gather(const T& mine) const {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> all;
    for (const auto& bytes : gather_bytes(std::as_bytes(std::span(&mine, 1)))) {
      all.push_back(*reinterpret_cast<const T*>(bytes.data()));
    }
    return all;
  }
  std::vector<std::string> gather_text(const std::string& mine) const;

  /// Collective on the world: every rank has ended its part. Whoever is elsewhere is named by the
  /// guard.
  void end_of_run();

 private:
  friend class SharedBuffer;
  struct State;
  struct Receive;
  struct Send;
  explicit Communicator(std::shared_ptr<State> state) : state_(std::move(state)) {}
  /// `world_rank`: this rank's among all of the run; -1: as in `transport`.
  Communicator(std::string name, std::unique_ptr<Transport> transport, int world_rank,
               Observers observers);
  Pending async_work(std::function<void(Communicator&)> work);
  std::vector<std::vector<std::byte>> gather_bytes(std::span<const std::byte> mine) const;
  /// What comes before a collective of the library: the check that all ranks come to it, and its
  /// charge in the ledger and on the clock.
  Guard::Watch collective(Operation operation, Tensor tensor, Reduction reduction, int root);
  std::shared_ptr<State> state_;
};

/// Sums `in_place` over the ranks of a communicator: what a chapter takes where it needs an
/// all-reduce, so that a later chapter can pass its own.
using AllReduce = std::function<void(Communicator&, Tensor in_place)>;
inline void library_all_reduce(Communicator& comm, Tensor in_place) { comm.all_reduce(in_place); }

}  // namespace fivecuts
