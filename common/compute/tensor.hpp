#pragma once
// Device, Buffer, Tensor: where numbers live, who owns them, and how they are looked at.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/compute/allocator.hpp"
#include "common/compute/bf16.hpp"
#include "common/observe/clock.hpp"
#include "common/observe/memory_ledger.hpp"
#include "common/support/error.hpp"

namespace fivecuts {

enum class DType : std::uint8_t { f32, i64, bf16 };
std::int64_t size_of(DType type);  ///< bytes of one element
const char* name_of(DType type);
template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<float>() {
  return DType::f32;
}
template <>
constexpr DType dtype_of<std::int64_t>() {
  return DType::i64;
}
template <>
constexpr DType dtype_of<Bf16>() {
  return DType::bf16;
}

class Backend;

/// One rank's memory and arithmetic. Buffers keep a pointer to it, so it must outlive them. A
/// `meta` device allocates and computes nothing and counts everything: the same program runs dry at
/// any size. Its tensors have addresses, which tell them apart and which nobody may follow.
/// A `cuda` device is a GPU. It computes later than it is told to, in two orders of its own, one
/// for each lane (clock.hpp): what the caller asks for, and what async() asks for. Only what brings
/// numbers to the host waits for it.
class Device {
 public:
  enum class Kind { cpu, cuda, meta };

  /// `backend`: of a `cuda` device, which nothing else makes (comm/cuda_module.hpp).
  explicit Device(MemoryLedger& ledger, Kind kind = Kind::cpu, Clock* clock = nullptr,
                  std::shared_ptr<Backend> backend = nullptr);
  Device(const Device&) = delete;

  Kind kind() const { return kind_; }
  bool dry() const { return kind_ == Kind::meta; }
  bool on_host() const { return kind_ == Kind::cpu; }  ///< its memory is the host's
  MemoryLedger& memory() const { return *ledger_; }
  const WorkLedger& work() const { return work_; }
  CachingAllocator& allocator() { return allocator_; }
  Backend* backend() const { return backend_.get(); }  ///< none on `meta`

  /// Books one operation in the ledger and on the clock. Returns who computes it; nobody on `meta`.
  Backend* book(const char* operation, const Work& work) {
    work_.add(work);
    if (clock_ != nullptr) clock_->compute(operation, work);
    return backend_.get();
  }
  /// An event `name` of the clock around what is computed while it lives.
  Clock::Span span(const char* name) {
    return clock_ != nullptr ? clock_->span(name) : no_clock_.span(name);
  }

  // --- the order of what is computed later; all of it is nothing where computing is at once ---
  /// A point in the order of the calling thread's lane: all that it has asked for so far.
  using Mark = std::shared_ptr<void>;
  Mark mark();
  void follow(const Mark& mark);  ///< the calling thread's lane goes on only after `mark`
  void synchronize();             ///< back when all that this lane has asked for is done
  /// How the host waits for the device: `wait(done)` returns when done() does. Whoever watches
  /// waits sets it; it must hold until the last wait.
  using Wait = std::function<void(const std::function<bool()>& done)>;
  void wait_by(Wait wait);
  std::int64_t host_waits() const;  ///< how often it has waited
  std::int64_t progress();          ///< grows while the device gets on with what it was given

  /// Addresses for `bytes` bytes that there are not: beyond what any process can have, so that
  /// following one is a crash and not a number.
  std::byte* dry_address(std::int64_t bytes);

 private:
  MemoryLedger* ledger_;
  Clock* clock_;
  Kind kind_;
  std::shared_ptr<Backend> backend_;
  WorkLedger work_;
  CachingAllocator allocator_;
  Clock no_clock_;
  std::atomic<std::uintptr_t> next_address_ = std::uintptr_t{1} << 60;
};
const char* name_of(Device::Kind kind);

/// A view of a row-major matrix of `rows` x `cols` elements. Owns nothing; a copy is another view
/// of the same numbers. A flat run of numbers is one row. An empty Tensor has no elements and no
/// device.
class Tensor {
 public:
  Tensor() = default;
  Tensor(Device& device, std::byte* data, DType type, std::int64_t rows, std::int64_t cols)
      : device_(&device), data_(data), type_(type), rows_(rows), cols_(cols) {}

  std::int64_t rows() const { return rows_; }
  std::int64_t cols() const { return cols_; }
  std::int64_t count() const { return rows_ * cols_; }
  std::int64_t bytes() const { return count() * size_of(type_); }
  bool empty() const { return count() == 0; }
  DType type() const { return type_; }
  Device* device() const { return device_; }
  std::byte* data() const { return data_; }

  /// Elements [first, first + count), flat.
  Tensor part(std::int64_t first, std::int64_t count) const;
  /// The same elements as `rows` x `cols`.
  Tensor shaped(std::int64_t rows, std::int64_t cols) const;

  bool dry() const { return device_ != nullptr && device_->dry(); }
  [[noreturn]] void wrong_type(DType wanted) const;

  /// The elements where they lie, in host memory. Fails if T is not the element type, if there are
  /// no numbers, or if a GPU has them.
  template <class T>
  std::span<T> as() const {
    require(!dry(), "a dry tensor has no numbers to look at; --device cpu has");
    require(
        device_ == nullptr || device_->on_host(),
        "these numbers are in a GPU's memory, where the host cannot look; copy_out() brings them");
    if (type_ != dtype_of<T>()) wrong_type(dtype_of<T>());
    return {reinterpret_cast<T*>(data_), static_cast<std::size_t>(count())};
  }

 private:
  Device* device_ = nullptr;
  std::byte* data_ = nullptr;
  DType type_ = DType::f32;
  std::int64_t rows_ = 0, cols_ = 0;
};

/// Owns the memory of one tensor, booked in the device's ledger under `category` for as long as it
/// lives. Fresh memory holds no particular values. Throws OutOfMemory over the cap.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Device& device, Category category, std::int64_t rows, std::int64_t cols,
         DType type = DType::f32);
  /// In host memory that `from`(bytes) gives, once it is booked; kept as long as the buffer lives.
  /// Not asked on `meta`.
  using Source = std::function<std::shared_ptr<std::byte>(std::int64_t bytes)>;
  Buffer(Device& device, Category category, std::int64_t rows, std::int64_t cols, DType type,
         const Source& from);
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer(std::move(other)).swap(*this);
    return *this;
  }
  ~Buffer();

  Tensor tensor() const { return tensor_; }
  operator Tensor() const { return tensor_; }

 private:
  void swap(Buffer& other) noexcept;
  Tensor tensor_;
  CachingAllocator::Block block_;
  std::shared_ptr<std::byte> elsewhere_;  // instead of a block
  Category category_ = Category::workspace;
};

/// Contiguous part `index` of `count` elements cut in `parts`: ceil or floor in size, the longer
/// ones first, some empty if count < parts. The one cutting rule of the project: shards, chunks,
/// batches.
struct Part {
  std::int64_t first = 0, count = 0;
};
Part part_of(std::int64_t count, int parts, int index);

}  // namespace fivecuts
