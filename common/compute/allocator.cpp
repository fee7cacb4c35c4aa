#include "common/compute/allocator.hpp"

#include <cstdlib>
#include <cstring>
#include <new>
#ifdef __linux__
#include <sys/mman.h>
#endif

namespace fivecuts {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool pass_through = true;
#else
constexpr bool pass_through = false;
#endif

constexpr std::size_t huge_page = std::size_t{2} << 20;

std::size_t rounded(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

void* from_system(std::size_t capacity) {
  const bool huge = capacity >= huge_page;
  void* data = std::aligned_alloc(huge ? huge_page : CachingAllocator::alignment, capacity);
  if (data == nullptr) throw std::bad_alloc();
#ifdef __linux__
  if (huge) madvise(data, capacity, MADV_HUGEPAGE);
#endif
  return data;
}

}  // namespace

CachingAllocator::~CachingAllocator() {
  for (const auto& [capacity, data] : free_) std::free(data);
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
  ++system_allocations_;
  const Block block{from_system(capacity), capacity};
  // Fresh memory that nobody wrote must not pass for zeros: all-ones bytes are NaN.
  if (pass_through) std::memset(block.data, 0xFF, capacity);
  return block;
}

void CachingAllocator::release(Block block) {
  if (block.data == nullptr) return;
  if (pass_through) return std::free(block.data);
  const std::lock_guard lock(mutex_);
  free_.emplace(block.capacity, block.data);
}

std::int64_t CachingAllocator::system_allocations() const {
  const std::lock_guard lock(mutex_);
  return system_allocations_;
}

}  // namespace fivecuts
