#include "common/compute/allocator.hpp"

#include <cstring>
#include <utility>

#include "common/compute/backend.hpp"

namespace fivecuts {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool pass_through = true;
#else
constexpr bool pass_through = false;
#endif

constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::size_t slab_size = std::size_t{32} << 20;

std::size_t rounded(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

CachingAllocator::~CachingAllocator() {
  for (void* data : from_system_) backend_->release(data);
}

void* CachingAllocator::from_system(std::size_t capacity) {
  void* data = backend_->allocate(capacity);
  ++system_allocations_;
  if (!pass_through) from_system_.push_back(data);
  return data;
}

/// Blocks that are too small for a huge page of their own are cut from slabs that have them: a
/// model's layers then lie together, in few pages.
void* CachingAllocator::fresh(std::size_t capacity) {
  if (pass_through || capacity >= huge_page) return from_system(capacity);
  if (slab_left_ < capacity) {
    slab_ = static_cast<std::byte*>(from_system(slab_size));
    slab_left_ = slab_size;
  }
  slab_left_ -= capacity;
  return std::exchange(slab_, slab_ + capacity);
}

CachingAllocator::Block CachingAllocator::allocate(std::size_t bytes) {
  if (bytes == 0) return {};
  const std::size_t capacity = rounded(bytes, bytes >= huge_page ? huge_page : alignment);
  const std::lock_guard lock(mutex_);
  // A block up to a quarter too large is reused: a ragged last batch then needs nothing new.
  if (const auto fit = free_.lower_bound(capacity);
      fit != free_.end() && fit->first <= capacity + capacity / 4) {
    const Block block{fit->second, fit->first};
    free_.erase(fit);
    return block;
  }
  const Block block{fresh(capacity), capacity};
  // Fresh memory that nobody wrote must not pass for zeros: all-ones bytes are NaN.
  if (pass_through) std::memset(block.data, 0xFF, capacity);
  return block;
}

void CachingAllocator::release(Block block) {
  if (block.data == nullptr) return;
  if (pass_through) return backend_->release(block.data);
  const std::lock_guard lock(mutex_);
  free_.emplace(block.capacity, block.data);
}

std::int64_t CachingAllocator::system_allocations() const {
  const std::lock_guard lock(mutex_);
  return system_allocations_;
}

}  // namespace fivecuts
