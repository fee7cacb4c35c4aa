#pragma once
// Memory that all ranks of one node read and write: a segment for each of them.
//
//     rank 0   [ 7 |  numbers of rank 0 ... ]    in front of the numbers: how often this rank has
//     rank 1   [ 8 |  numbers of rank 1 ... ]    come to the barrier. Rank 1 is there for the 8th
//     rank 2   [ 7 |  numbers of rank 2 ... ]    time, and waits until no count is below 8.
//
// A line of the cache has one writer, so that coming costs a rank no more than a store, and a load
// of each other's line.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace fivecuts {

class SharedMemory {
 public:
  static constexpr std::size_t header = 256;  ///< bytes of a segment before its numbers

  /// `segments[r]`: where rank r's lies in this process, aligned to 256 bytes. `owner` keeps them
  /// all. `given_up`, if not null, says that another rank will not come any more. All ranks must
  /// have made theirs before one of them uses it.
  SharedMemory(std::vector<std::byte*> segments, int rank, std::shared_ptr<void> owner,
               const std::atomic<bool>* given_up = nullptr);

  std::byte* of(int rank) const { return segments_[static_cast<std::size_t>(rank)] + header; }
  /// Returns when all ranks have come. What each wrote before it came, all see afterwards.
  void barrier();

 private:
  using Arrivals = std::atomic<std::uint64_t>;
  static_assert(Arrivals::is_always_lock_free && sizeof(Arrivals) <= header);
  Arrivals& arrivals(std::size_t rank) const {
    return *std::launder(reinterpret_cast<Arrivals*>(segments_[rank]));
  }

  std::vector<std::byte*> segments_;
  std::size_t rank_;
  std::shared_ptr<void> owner_;
  const std::atomic<bool>* given_up_;
  std::uint64_t round_ = 0;
  int polls_;  // before it lets others have the core
};

}  // namespace fivecuts
