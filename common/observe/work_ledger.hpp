#pragma once
// What a rank's device computed, counted by the operations themselves, on any device.
#include <cstdint>
#include <mutex>

namespace fivecuts {

/// One operation, or a sum of them.
struct Work {
  double flops = 0;
  double bytes = 0;           ///< read and written in the device's memory
  std::int64_t thinnest = 0;  ///< of a matrix product: its smallest dimension; 0: no product
  bool half = false;          ///< on 2-byte numbers
};

/// Safe to use from the rank's two threads.
class WorkLedger {
 public:
  void add(const Work& work) {
    const std::lock_guard lock(mutex_);
    flops_ += work.flops;
    bytes_ += work.bytes;
    ++operations_;
  }
  double flops() const { return locked(flops_); }
  double bytes() const { return locked(bytes_); }
  std::int64_t operations() const { return locked(operations_); }

 private:
  template <class T>
  T locked(const T& value) const {
    const std::lock_guard lock(mutex_);
    return value;
  }
  mutable std::mutex mutex_;
  double flops_ = 0, bytes_ = 0;
  std::int64_t operations_ = 0;
};

}  // namespace fivecuts
