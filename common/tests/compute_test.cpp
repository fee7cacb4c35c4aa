// Memory and views of it: allocator, buffers, tensors, the cutting rule.
#include <cstring>
#include <set>

#include "common/compute/allocator.hpp"
#include "common/compute/backend.hpp"
#include "common/tests/helpers.hpp"

namespace fivecuts {
namespace {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

RANK_TEST(Allocator, AlignsAndReuses) {
  CachingAllocator allocator(&cpu_backend());
  const auto round = [&] {
    std::vector<CachingAllocator::Block> blocks;
    for (const std::size_t bytes : {1u, 256u, 257u, 1000u, 3u << 20}) {
      blocks.push_back(allocator.allocate(bytes));
      EXPECT_GE(blocks.back().capacity, bytes);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks.back().data) % CachingAllocator::alignment,
                0u);
      std::memset(blocks.back().data, static_cast<int>(blocks.size()), blocks.back().capacity);
    }
    for (std::size_t k = 0; k < blocks.size(); ++k) {
      const auto* bytes = static_cast<const unsigned char*>(blocks[k].data);
      EXPECT_EQ(bytes[0], k + 1) << "two blocks overlap";
      EXPECT_EQ(bytes[blocks[k].capacity - 1], k + 1) << "two blocks overlap";
      allocator.release(blocks[k]);
    }
  };
  round();
  EXPECT_EQ(allocator.system_allocations(), sanitized ? 5 : 2) << "a slab and the large block";
  round();
  EXPECT_EQ(allocator.system_allocations(), sanitized ? 10 : 2);
}

// More small blocks than one slab holds: none overlaps another, and all are reused.
RANK_TEST(Allocator, CutsSmallBlocksFromAsManySlabsAsItTakes) {
  CachingAllocator allocator(&cpu_backend());
  std::vector<CachingAllocator::Block> blocks;
  for (int k = 0; k < 100; ++k) {
    blocks.push_back(allocator.allocate((1u << 20) + 256u * static_cast<unsigned>(k % 7)));
    std::memset(blocks.back().data, k, blocks.back().capacity);
  }
  for (std::size_t k = 0; k < blocks.size(); ++k) {
    const auto* bytes = static_cast<const unsigned char*>(blocks[k].data);
    EXPECT_TRUE(bytes[0] == k && bytes[blocks[k].capacity - 1] == k) << "block " << k;
    allocator.release(blocks[k]);
  }
  const std::int64_t asked = allocator.system_allocations();
  for (auto& block : blocks) block = allocator.allocate(1u << 20);
  EXPECT_EQ(allocator.system_allocations(), sanitized ? 200 : asked);
  for (const auto& block : blocks) allocator.release(block);
}

RANK_TEST(Allocator, ReusesForARaggedBatchButNotForMuchLess) {
  if (sanitized) return;  // there nothing is reused
  CachingAllocator allocator(&cpu_backend());
  const auto whole = allocator.allocate(100 * 256);
  allocator.release(whole);
  const auto ragged = allocator.allocate(90 * 256);
  EXPECT_EQ(ragged.data, whole.data);
  allocator.release(ragged);
  const auto small = allocator.allocate(10 * 256);
  EXPECT_NE(small.data, whole.data);
  allocator.release(small);
  const auto nothing = allocator.allocate(0);
  EXPECT_EQ(nothing.data, nullptr);
  allocator.release(nothing);
}

RANK_TEST(Buffer, BooksWhatItHoldsForAsLongAsItLives) {
  MemoryLedger ledger;
  Device device(ledger);
  {
    Buffer a(device, Category::parameter, 3, 5);
    const Buffer b(device, Category::gradient, 2, 2, DType::i64);
    const Buffer empty(device, Category::activation, 0, 9);
    EXPECT_EQ(ledger.live(Category::parameter), 60);
    EXPECT_EQ(ledger.live(Category::gradient), 32);
    EXPECT_EQ(ledger.live(Category::activation), 0);
    EXPECT_EQ(empty.tensor().cols(), 9);

    const std::byte* const where = a.tensor().data();
    Buffer moved(std::move(a));
    EXPECT_EQ(moved.tensor().data(), where);
    EXPECT_EQ(ledger.live(), 92) << "a move books nothing";
    moved = Buffer(device, Category::optimizer, 1, 1);
    EXPECT_EQ(ledger.live(Category::parameter), 0) << "what was assigned over is given back";
    EXPECT_EQ(ledger.live(Category::optimizer), 4);
    Buffer& self = moved;
    moved = std::move(self);
    EXPECT_EQ(moved.tensor().count(), 1);
    EXPECT_EQ(ledger.live(Category::optimizer), 4);
    moved = Buffer();
    EXPECT_EQ(ledger.live(), 32);
  }
  EXPECT_EQ(ledger.live(), 0);
  EXPECT_EQ(ledger.peak(), 96);
}

RANK_TEST(Buffer, OverTheCapLeavesNoTrace) {
  MemoryLedger ledger(100);
  Device device(ledger);
  const Buffer held(device, Category::parameter, 1, 20);
  EXPECT_THROW(Buffer(device, Category::activation, 2, 3), OutOfMemory);
  EXPECT_EQ(ledger.live(), 80);
  EXPECT_EQ(ledger.peak(), 80);
  EXPECT_EQ(device.allocator().system_allocations(), 1)
      << "a refused buffer asks the system for nothing";
  EXPECT_NO_THROW(Buffer(device, Category::activation, 1, 5));
}

RANK_TEST(Buffer, MoreThanTheMachineHasIsOutOfMemoryToo) {
  if (sanitized) return;  // the sanitizers end the process on such a request
  MemoryLedger ledger;
  Device device(ledger);
  const std::string said =
      message_of<OutOfMemory>([&] { Buffer(device, Category::workspace, 1 << 30, 1 << 28); });
  EXPECT_TRUE(has(said, "workspace")) << said;
  EXPECT_EQ(ledger.live(), 0);
}

RANK_TEST(Buffer, RefusesSizesThatAreNone) {
  MemoryLedger ledger;
  Device device(ledger);
  EXPECT_THROW(Buffer(device, Category::workspace, -1, 4), Failure);
  EXPECT_THROW(Buffer(device, Category::workspace, -2, -3), Failure);
  EXPECT_THROW(Buffer(device, Category::workspace, std::int64_t{1} << 40, std::int64_t{1} << 40),
               Failure);
  EXPECT_EQ(ledger.live(), 0);
}

RANK_TEST(Tensor, PartsAndShapesStayInside) {
  const Buffer buffer = random_buffer(4, 6, 1);
  const Tensor whole = buffer;
  const Tensor part = whole.part(5, 12);
  EXPECT_EQ(part.rows(), 1);
  EXPECT_EQ(part.data(), whole.data() + 5 * sizeof(float));
  EXPECT_EQ(part.shaped(4, 3).cols(), 3);
  EXPECT_EQ(whole.part(24, 0).count(), 0);
  EXPECT_EQ(Tensor().part(0, 0).count(), 0);
  EXPECT_EQ(whole.part(3, 0).shaped(0, 7).cols(), 7);
  EXPECT_THROW(whole.part(0, 25), Failure);
  EXPECT_THROW(whole.part(24, 1), Failure);
  EXPECT_THROW(whole.part(-1, 2), Failure);
  EXPECT_THROW(whole.part(2, -1), Failure);
  EXPECT_THROW(whole.part(5, largest), Failure);
  EXPECT_THROW(whole.part(largest, largest), Failure);
  EXPECT_THROW(whole.shaped(4, 5), Failure);
  EXPECT_THROW(whole.shaped(-4, -6), Failure);
  EXPECT_THROW(whole.shaped(std::int64_t{1} << 62, 8), Failure);
  EXPECT_THROW(whole.shaped(0, 6), Failure);
  EXPECT_THROW(whole.as<std::int64_t>(), Failure);
  EXPECT_THROW(Tensor().part(0, 1), Failure);
}

RANK_TEST(PartOf, CutsContiguouslyIntoCeilAndFloor) {
  for (const std::int64_t count : {0, 1, 2, 3, 4, 5, 7, 8, 9, 1000, 1857}) {
    for (const int parts : {1, 2, 3, 4, 8, 64}) {
      std::int64_t next = 0, last_size = count + 1;
      for (int index = 0; index < parts; ++index) {
        const Part part = part_of(count, parts, index);
        EXPECT_EQ(part.first, next);
        EXPECT_TRUE(part.count == count / parts || part.count == (count + parts - 1) / parts);
        EXPECT_LE(part.count, last_size) << "the longer ones come first";
        next += part.count;
        last_size = part.count;
      }
      EXPECT_EQ(next, count);
    }
  }
  EXPECT_EQ(part_of(2, 4, 3).count, 0);
  EXPECT_EQ(part_of(10'000'000'000'000, 3, 2).first, 6'666'666'666'667);
  EXPECT_THROW(part_of(4, 0, 0), Failure);
  EXPECT_THROW(part_of(4, 2, 2), Failure);
  EXPECT_THROW(part_of(4, 2, -1), Failure);
  EXPECT_THROW(part_of(-4, 2, 1), Failure);
}

RANK_TEST(Hash, ChangesWithEveryBitTheOrderAndTheLength) {
  const Buffer buffer = random_buffer(1, 33, 2);
  std::vector<float> numbers = copy_out(buffer);
  const auto bytes = std::as_writable_bytes(std::span(numbers));
  std::set<std::uint64_t> seen{hash(buffer)};
  const Buffer same = random_buffer(1, 33, 2);
  EXPECT_EQ(hash(same), hash(buffer));
  const auto is_new = [&] {
    copy_in(numbers, buffer);
    return seen.insert(hash(buffer)).second;
  };
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_TRUE(is_new()) << "bit " << bit;
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    std::swap(numbers[i - 1], numbers[i]);
    EXPECT_TRUE(is_new()) << "swapped " << i;
    std::swap(numbers[i - 1], numbers[i]);
  }
  zero(buffer);
  for (std::int64_t count = 0; count <= 33; ++count) {
    EXPECT_TRUE(seen.insert(hash(buffer.tensor().part(0, count))).second) << count << " zeros";
  }
}

}  // namespace
}  // namespace fivecuts
