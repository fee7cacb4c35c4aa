#include "common/observe/memory_ledger.hpp"

#include <fmt/format.h>

#include "common/support/units.hpp"

namespace fivecuts {
namespace {
std::size_t index_of(Category category) { return static_cast<std::size_t>(category); }
}  // namespace

const char* name_of(Category category) {
  static constexpr std::array names = {"parameter", "gradient", "optimizer", "activation",
                                       "workspace"};
  return names.at(index_of(category));
}

void MemoryLedger::Amount::add(std::int64_t bytes) {
  live += bytes;
  if (live > peak) peak = live;
}

std::string MemoryLedger::in_use_locked() const {
  std::string held;
  for (const Category c : all_categories) {
    const auto live = static_cast<double>(of_[index_of(c)].live);
    if (live > 0)
      held += fmt::format("{}{} {}", held.empty() ? "" : ", ", name_of(c), show_bytes(live));
  }
  return held.empty() ? "nothing" : held;
}

std::string MemoryLedger::in_use() const {
  const std::lock_guard lock(mutex_);
  return in_use_locked();
}

void MemoryLedger::allocate(Category category, std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > cap_ - total_.live) {
    throw OutOfMemory(
        fmt::format("out of memory: {} for {} is {} more than fits under --memory {} (in use: {})",
                    show_bytes(static_cast<double>(bytes)), name_of(category),
                    show_bytes(static_cast<double>(bytes - (cap_ - total_.live))),
                    show_bytes(static_cast<double>(cap_)), in_use_locked()));
  }
  of_[index_of(category)].add(bytes);
  total_.add(bytes);
  tell_locked();
}

void MemoryLedger::release(Category category, std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  of_[index_of(category)].live -= bytes;
  total_.live -= bytes;
  tell_locked();
}

void MemoryLedger::tell_locked() const {
  if (!look_) return;
  Live live{};
  for (const Category c : all_categories) live[index_of(c)] = of_[index_of(c)].live;
  look_(live);
}

void MemoryLedger::watch(std::function<void(const Live& live)> look) {
  const std::lock_guard lock(mutex_);
  look_ = std::move(look);
}

std::int64_t MemoryLedger::live(Category category) const {
  const std::lock_guard lock(mutex_);
  return of_[index_of(category)].live;
}

std::int64_t MemoryLedger::peak(Category category) const {
  const std::lock_guard lock(mutex_);
  return of_[index_of(category)].peak;
}

std::int64_t MemoryLedger::live() const {
  const std::lock_guard lock(mutex_);
  return total_.live;
}

std::int64_t MemoryLedger::peak() const {
  const std::lock_guard lock(mutex_);
  return total_.peak;
}

std::int64_t MemoryLedger::model_state() const {
  const std::lock_guard lock(mutex_);
  return of_[0].live + of_[1].live + of_[2].live;
}

void MemoryLedger::reset_peak() {
  const std::lock_guard lock(mutex_);
  for (Amount& amount : of_) amount.peak = amount.live;
  total_.peak = total_.live;
}

}  // namespace fivecuts
