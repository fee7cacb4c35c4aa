#include "common/compute/tensor.hpp"

#include <algorithm>

#include "common/compute/backend.hpp"
#include "common/support/units.hpp"

namespace fivecuts {

std::int64_t size_of(DType type) {
  static constexpr std::int64_t sizes[] = {4, 8, 2};
  return sizes[static_cast<std::size_t>(type)];
}
const char* name_of(DType type) {
  static constexpr const char* names[] = {"f32", "i64", "bf16"};
  return names[static_cast<std::size_t>(type)];
}
const char* name_of(Device::Kind kind) {
  static constexpr const char* names[] = {"cpu", "cuda", "meta"};
  return names[static_cast<std::size_t>(kind)];
}

namespace {
std::shared_ptr<Backend> backend_of(Device::Kind kind, std::shared_ptr<Backend> given) {
  if (kind == Device::Kind::cpu) return {std::shared_ptr<void>(), &cpu_backend()};  // nobody's own
  require((given == nullptr) == (kind == Device::Kind::meta),
          "cuda needs a backend, meta has none");
  return given;
}
}  // namespace

Device::Device(MemoryLedger& ledger, Kind kind, Clock* clock, std::shared_ptr<Backend> backend)
    : ledger_(&ledger),
      clock_(clock),
      kind_(kind),
      backend_(backend_of(kind, std::move(backend))),
      allocator_(backend_.get(), backend_ == nullptr || !backend_->pools_memory()) {}

Device::Mark Device::mark() { return backend_ ? backend_->mark() : nullptr; }
void Device::follow(const Mark& mark) {
  if (mark) backend_->follow(mark);
}
void Device::synchronize() {
  if (backend_) backend_->synchronize();
}
void Device::wait_by(Wait wait) {
  if (backend_) backend_->wait_by(std::move(wait));
}
std::int64_t Device::host_waits() const { return backend_ ? backend_->host_waits() : 0; }
std::int64_t Device::progress() { return backend_ ? backend_->progress() : 0; }

std::byte* Device::dry_address(std::int64_t bytes) {
  const auto size = (static_cast<std::uintptr_t>(bytes) + 255) / 256 * 256;
  return reinterpret_cast<std::byte*>(next_address_.fetch_add(size));
}

namespace {

/// rows * cols; a product beyond 64 bits would wrap around to a number that looks right.
std::int64_t element_count(std::int64_t rows, std::int64_t cols) {
  constexpr std::int64_t most = INT64_MAX / 8;  // so that a count of bytes fits too
  require(rows >= 0 && cols >= 0 && (cols == 0 || rows <= most / cols),
          "no tensor can have such a shape");
  return rows * cols;
}

}  // namespace

void Tensor::wrong_type(DType wanted) const {
  fail(fmt::format("a tensor of {} was read as {}", name_of(type_), name_of(wanted)));
}

Tensor Tensor::part(std::int64_t first, std::int64_t count) const {
  if (first < 0 || count < 0 || first > this->count() - count) {
    fail(fmt::format("part({}, {}) reaches beyond its tensor of {} elements", first, count,
                     this->count()));
  }
  Tensor part = *this;
  // An empty tensor may have no address at all; offsets from it would be undefined.
  if (first > 0) part.data_ += first * size_of(type_);
  part.rows_ = 1;
  part.cols_ = count;
  return part;
}

Tensor Tensor::shaped(std::int64_t rows, std::int64_t cols) const {
  require(element_count(rows, cols) == count(), "a tensor was given a shape of another size");
  Tensor shaped = *this;
  shaped.rows_ = rows;
  shaped.cols_ = cols;
  return shaped;
}

Buffer::Buffer(Device& device, Category category, std::int64_t rows, std::int64_t cols, DType type)
    : category_(category) {
  const std::int64_t bytes = element_count(rows, cols) * size_of(type);
  device.memory().allocate(category, bytes);
  if (device.dry()) {
    tensor_ = Tensor(device, device.dry_address(bytes), type, rows, cols);
    return;
  }
  try {
    block_ = device.allocator().allocate(static_cast<std::size_t>(bytes));
  } catch (const std::bad_alloc&) {
    device.memory().release(category, bytes);
    throw OutOfMemory(fmt::format("out of memory: the {} has no {} more for {} (in use: {})",
                                  device.on_host() ? "machine" : "GPU",
                                  show_bytes(static_cast<double>(bytes)), name_of(category),
                                  device.memory().in_use()));
  }
  tensor_ = Tensor(device, static_cast<std::byte*>(block_.data), type, rows, cols);
}

Buffer::Buffer(Device& device, Category category, std::int64_t rows, std::int64_t cols, DType type,
               const Source& from)
    : category_(category) {
  const std::int64_t bytes = element_count(rows, cols) * size_of(type);
  device.memory().allocate(category, bytes);
  try {
    if (!device.dry()) elsewhere_ = from(bytes);
  } catch (...) {
    device.memory().release(category, bytes);
    throw;
  }
  std::byte* const data = device.dry() ? device.dry_address(bytes) : elsewhere_.get();
  tensor_ = Tensor(device, data, type, rows, cols);
}

Buffer::~Buffer() {
  if (tensor_.device() == nullptr) return;
  tensor_.device()->memory().release(category_, tensor_.bytes());
  if (!tensor_.dry()) tensor_.device()->allocator().release(block_);
}

void Buffer::swap(Buffer& other) noexcept {
  std::swap(tensor_, other.tensor_);
  std::swap(block_, other.block_);
  elsewhere_.swap(other.elsewhere_);
  std::swap(category_, other.category_);
}

Part part_of(std::int64_t count, int parts, int index) {
  require(count >= 0 && index >= 0 && index < parts, "there is no such part");
  const std::int64_t size = count / parts, longer = count % parts;
  return {index * size + std::min<std::int64_t>(index, longer), size + (index < longer ? 1 : 0)};
}

}  // namespace fivecuts
