#include "common/compute/allocator.hpp"

#include <utility>

namespace fivecuts {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool may_keep = false;
#else
constexpr bool may_keep = true;
#endif

constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::size_t slab_size = std::size_t{32} << 20;

std::size_t rounded(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

CachingAllocator::CachingAllocator(MemorySource* source, bool keep)
    : source_(source), exact_(!keep), keep_(keep && may_keep) {}

CachingAllocator::~CachingAllocator() {
  for (void* data : from_system_) source_->release(data);
}

void* CachingAllocator::from_system(std::size_t capacity) {
  void* data = source_->allocate(capacity);
  ++system_allocations_;
  if (keep_) from_system_.push_back(data);
  return data;
}

/// Blocks that are too small for a huge page of their own are cut from slabs that have them: a
/// model's layers then lie together, in few pages.
void* CachingAllocator::fresh(std::size_t capacity) {
  if (!keep_ || capacity >= huge_page) return from_system(capacity);
  if (slab_left_ < capacity) {
    slab_ = static_cast<std::byte*>(from_system(slab_size));
    slab_left_ = slab_size;
  }
  slab_left_ -= capacity;
  return std::exchange(slab_, slab_ + capacity);
}

CachingAllocator::Block CachingAllocator::allocate(std::size_t bytes) {
  if (bytes == 0) return {};
  const std::size_t unit = exact_ ? 1 : bytes >= huge_page ? huge_page : alignment;
  const std::size_t capacity = rounded(bytes, unit);
  const std::lock_guard lock(mutex_);
  // A block up to a quarter too large is reused: a ragged last batch then needs nothing new.
  if (const auto fit = free_.lower_bound(capacity);
      fit != free_.end() && fit->first <= capacity + capacity / 4) {
    const Block block{fit->second, fit->first};
    free_.erase(fit);
    return block;
  }
  return {fresh(capacity), capacity};
}

void CachingAllocator::release(Block block) {
  if (block.data == nullptr) return;
  if (!keep_) return source_->release(block.data);
  const std::lock_guard lock(mutex_);
  free_.emplace(block.capacity, block.data);
}

std::int64_t CachingAllocator::system_allocations() const {
  const std::lock_guard lock(mutex_);
  return system_allocations_;
}

}  // namespace fivecuts
