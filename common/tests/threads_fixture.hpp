#pragma once
// Worlds of threads, for tests. They stand in one process: rank 0 of mpirun alone makes them, and
// the others pass by.
#include <string>
#include <vector>

#include "common/comm/transport_threads.hpp"
#include "common/tests/comm_fixture.hpp"
#include "common/tests/helpers.hpp"

namespace fivecuts {

/// One rank of a world of threads.
struct Rank {
  explicit Rank(std::unique_ptr<Transport> world, bool guard = false)
      : context(std::move(world), options(guard)),
        transport(context.world.transport()),
        rank(transport.rank()),
        n(transport.size()),
        right((rank + 1) % n),
        left((rank + n - 1) % n) {}
  static CommonOptions options(bool guard) {
    CommonOptions chosen;
    chosen.guard = guard;
    return chosen;
  }
  std::unique_ptr<InFlight> send(int peer, Tensor t) const { return start({to(peer, t)}); }
  std::unique_ptr<InFlight> receive(int peer, Tensor t) const { return start({from(peer, t)}); }
  std::unique_ptr<InFlight> start(std::vector<Transfer> all) const { return transport.start(all); }
  void barrier() const { transport.all_gather_host({}); }

  Context context;
  Transport& transport;
  const int rank, n, right, left;
};

template <class Body>
void world_of(int n, const Body& body, bool guard = false) {
  if (!once()) return;
  SCOPED_TRACE(fmt::format("a world of {}", n));
  on_threads(n, [&](std::unique_ptr<Transport> transport) {
    Rank rank(std::move(transport), guard);
    body(rank);
  });
}

template <class Body>
void all_worlds(const Body& body) {
  for (const int n : {1, 2, 3, 4, 5, 8}) world_of(n, body);
}

/// Awkward ones, those around the limit of eager messages, and a long one.
inline std::vector<std::int64_t> counts(int n) {
  return {0, 1, n - 1, n, n + 1, 511, 512, 513, 1000, 1023, 1024, 1025, 1857, 300000};
}

/// f(type, count)
template <class F>
void sweep(int n, const F& f) {
  for (const DType type : {DType::f32, DType::i64}) {
    for (const std::int64_t count : counts(n)) f(type, count);
  }
}

inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}
inline std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace fivecuts
