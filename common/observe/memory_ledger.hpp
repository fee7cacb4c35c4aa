#pragma once
// Who holds how many bytes, per rank: kept by the buffers themselves, so it cannot drift from the
// truth.
#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>

namespace fivecuts {

/// The account of the ZeRO paper (arXiv:1910.02054, section 3): model state is the first three.
enum class Category { parameter, gradient, optimizer, activation, workspace };
inline constexpr int category_count = 5;
inline constexpr std::array all_categories = {Category::parameter, Category::gradient,
                                              Category::optimizer, Category::activation,
                                              Category::workspace};
const char* name_of(Category category);

/// A buffer does not fit under the cap. The sentence names the category and what was missing.
struct OutOfMemory : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Live and peak bytes of one rank by category. Safe to use from the rank's two threads.
class MemoryLedger {
 public:
  static constexpr std::int64_t unlimited = INT64_MAX;

  /// `cap`: bytes this rank may hold at once, in all categories together.
  explicit MemoryLedger(std::int64_t cap = unlimited) : cap_(cap) {}

  /// Books `bytes`, or throws OutOfMemory and books nothing.
  void allocate(Category category, std::int64_t bytes);
  void release(Category category, std::int64_t bytes);

  std::int64_t live(Category category) const;
  std::int64_t peak(Category category) const;
  std::int64_t live() const;         ///< all categories
  std::int64_t peak() const;         ///< the highest total there was, not the sum of the peaks
  std::int64_t model_state() const;  ///< live parameters, gradients and optimizer state
  std::int64_t cap() const { return cap_; }
  std::string in_use() const;  ///< "parameter 400 B, gradient 1 KB", or "nothing"
  void reset_peak();

  /// Live bytes by category, in the order of all_categories.
  using Live = std::array<std::int64_t, category_count>;
  /// `look` is called after each change, for a curve over time; it must not ask the ledger. An
  /// empty one ends that.
  void watch(std::function<void(const Live& live)> look);

 private:
  std::string in_use_locked() const;
  void tell_locked() const;
  struct Amount {
    std::int64_t live = 0, peak = 0;
    void add(std::int64_t bytes);
  };
  std::int64_t cap_;
  mutable std::mutex mutex_;
  std::array<Amount, category_count> of_;
  Amount total_;
  std::function<void(const Live&)> look_;
};

}  // namespace fivecuts
