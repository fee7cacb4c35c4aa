#pragma once
// A Transport moves bytes between the ranks of one group, and knows nothing of what they mean. The
// Communicator on top of it adds groups, checks and observers.
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/comm/shared_memory.hpp"
#include "common/compute/tensor.hpp"

namespace fivecuts {

/// One message of a group of them: `tensor` goes to, or comes from, rank `peer`.
struct Transfer {
  enum class Kind { send, receive } kind;
  int peer;
  Tensor tensor;
};
inline Transfer to(int peer, Tensor tensor) { return {Transfer::Kind::send, peer, tensor}; }
inline Transfer from(int peer, Tensor tensor) { return {Transfer::Kind::receive, peer, tensor}; }

enum class Reduction : std::uint8_t { sum, max };

/// Messages under way. Must be waited for (or found done) before it goes.
class InFlight {
 public:
  virtual ~InFlight() = default;
  virtual void wait() = 0;
  virtual bool done() = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual const char* name() const = 0;  ///< "mpi", ...
  virtual int rank() const = 0;          ///< in this group
  virtual int size() const = 0;
  virtual int node(int rank) const = 0;  ///< equal for ranks on one machine

  /// Collective. The ranks with the same `group` (>= 0) form a new group, ordered as in this one,
  /// which whoever reports on it calls `called`.
  virtual std::unique_ptr<Transport> split(int group, const std::string& called) = 0;

  /// What moves the host memory of the same ranks: itself, or what it stands on.
  virtual Transport& host() { return *this; }

  /// This rank ends with an exception. Where the transport can tell them, those that wait for it,
  /// now or later, fail.
  virtual void give_up() {}

  /// What of the transport's work a GPU is waiting for, if one does that work.
  virtual std::string under_way() { return "the device to finish what it was given"; }

  // --- device memory ---
  // On a GPU's memory these are part of what the calling thread's lane has been asked for (Device):
  // they begin when what comes before them is computed, and may return before.
  /// Starts all of `transfers` together: none of them waits for another one to be started.
  virtual std::unique_ptr<InFlight> start(std::span<const Transfer> transfers) = 0;
  virtual void all_reduce(Tensor in_place, Reduction reduction) = 0;
  virtual void broadcast(Tensor in_place, int root) = 0;
  /// Rank r's part is part_of(whole.count(), size, r), and may lie in its place in the whole.
  virtual void all_gather(Tensor part, Tensor whole) = 0;
  virtual void reduce_scatter(Tensor whole, Tensor part, Reduction reduction) = 0;

  // --- memory that the ranks of one node share ---
  /// Whether share() can be asked for, the same on all ranks.
  virtual bool shares_memory() const { return false; }
  /// Collective, and so is the end of what it gives. A segment with room for `bytes` for each rank.
  virtual std::shared_ptr<SharedMemory> share(std::size_t) { fail("no memory to share"); }

  // --- host memory, beside the data: envelopes and verdicts of the guard, the control channel ---
  enum class Plane { envelope, verdict };
  virtual std::unique_ptr<InFlight> start_send(std::span<const std::byte> bytes, int to, Plane) = 0;
  virtual std::unique_ptr<InFlight> start_receive(std::span<std::byte> bytes, int from, Plane) = 0;
  /// Collective. What each rank gave, any number of bytes, in the order of the ranks.
  virtual std::vector<std::vector<std::byte>> all_gather_host(std::span<const std::byte> mine) = 0;
};

}  // namespace fivecuts
