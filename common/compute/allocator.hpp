#pragma once
// Memory that is asked from the system once and then reused: the first touch of a fresh page
// costs more than all the arithmetic done on it, so a training step must not allocate.
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace fivecuts {

/// Where memory comes from: a system's or a device's.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  /// A block aligned to 256 bytes; throws std::bad_alloc when there is no more.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* data) noexcept = 0;
};

/// Blocks aligned to 256 bytes; large ones in huge pages where the system has them. A freed block
/// is kept for the next request of about its size until the allocator ends. Under the address and
/// thread sanitizers every request goes to the system, so that they see each block's whole life.
class CachingAllocator {
 public:
  static constexpr std::size_t alignment = 256;

  /// Without a source nothing can be allocated. `keep`: false, if freed blocks go back at once, to
  /// a source that keeps them itself.
  explicit CachingAllocator(MemorySource* source, bool keep = true);
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;
  ~CachingAllocator();

  struct Block {
    void* data = nullptr;
    std::size_t capacity = 0;  ///< what to give back; at least what was asked
  };
  Block allocate(std::size_t bytes);  ///< throws std::bad_alloc when the system has no more
  void release(Block block);

  bool keeps() const { return keep_; }  ///< freed blocks, for the next request
  /// How often the source was asked; where blocks are kept, constant from the second training step
  /// on.
  std::int64_t system_allocations() const;

 private:
  void* from_system(std::size_t capacity);
  void* fresh(std::size_t capacity);
  MemorySource* const source_;
  const bool exact_;  // the source sees the sizes that are asked for, and so where each block ends
  const bool keep_;
  mutable std::mutex mutex_;
  std::multimap<std::size_t, void*> free_;
  std::vector<void*> from_system_;  ///< given back at the end
  std::byte* slab_ = nullptr;       ///< the rest of the newest slab
  std::size_t slab_left_ = 0;
  std::int64_t system_allocations_ = 0;
};

}  // namespace fivecuts
