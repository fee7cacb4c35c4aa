#pragma once
// What the tests of the communicator share: numbers that tell rank and index, compared with ==.
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "common/compute/operations.hpp"
#include "common/support/test_main.hpp"

namespace fivecuts {

/// What `rank` puts at `index`. A shifted, swapped or repeated piece gives other numbers. Small
/// enough that sums over a few ranks are exact: in f32, and in bf16 up to 256, so those of 5 ranks.
inline std::int64_t value(int rank, std::int64_t index, DType type = DType::f32) {
  return index % (type == DType::bf16 ? 7 : 1009) * 8 + rank + 1;
}

/// Awkward sizes, and those around the limits where MPI stops to buffer a message (1 KB to 128 KB).
std::vector<std::int64_t> sizes(int ranks);

/// A new buffer with f(index) in it.
template <class F>
Buffer filled(Context& context, DType type, std::int64_t count, const F& f) {
  Buffer buffer(context.device, Category::workspace, 1, count, type);
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<std::int64_t>(f(i)));
  if (type == DType::i64) {
    copy_in(numbers, buffer);
  } else {
    copy_in(std::vector<float>(numbers.begin(), numbers.end()), buffer);
  }
  return buffer;
}
inline Buffer of_rank(Context& context, DType type, std::int64_t count, int rank) {
  return filled(context, type, count, [&](std::int64_t i) { return value(rank, i, type); });
}
/// No message holds these numbers.
inline Buffer blank(Context& context, DType type, std::int64_t count) {
  return filled(context, type, count, [](std::int64_t) { return -1; });
}

inline std::vector<double> elements(Tensor tensor) {
  if (tensor.type() == DType::i64) {
    const auto numbers = copy_out_i64(tensor);
    return {numbers.begin(), numbers.end()};
  }
  const auto numbers = copy_out(tensor);
  return {numbers.begin(), numbers.end()};
}
inline double element(Tensor tensor, std::int64_t index) {
  return elements(tensor.part(index, 1)).front();
}

/// Every element is f(index).
template <class F>
testing::AssertionResult holds(Tensor tensor, const F& f) {
  const std::vector<double> got = elements(tensor);
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    const double element = got[static_cast<std::size_t>(i)];
    if (element == static_cast<double>(f(i))) continue;
    return testing::AssertionFailure()
           << "element " << i << " of " << tensor.count() << " is " << element << ", not " << f(i);
  }
  return testing::AssertionSuccess();
}
inline testing::AssertionResult holds_of_rank(Tensor tensor, int rank) {
  return holds(tensor, [&](std::int64_t i) { return value(rank, i, tensor.type()); });
}

using GuardAndType = std::tuple<bool, DType>;
/// Each COMM_TEST of such a suite runs with and without the guard, for each type.
using CommTest = testing::TestWithParam<GuardAndType>;

/// What such a test sees, on each rank.
class CommScene {
 public:
  explicit CommScene(GuardAndType chosen)
      : bare(std::get<0>(chosen) ? nullptr : without_guard()),
        context(bare ? *bare : test_context()),
        comm(context.world),
        type(std::get<1>(chosen)),
        rank(comm.rank()),
        n(comm.size()),
        right((rank + 1) % n),
        left((rank + n - 1) % n) {
    context.traffic.reset();
  }
  /// What `r` puts at `index`, in the type of this test; and the sum of that over all ranks.
  std::int64_t value(int r, std::int64_t index) const { return fivecuts::value(r, index, type); }
  std::int64_t sum_of_ranks(std::int64_t index) const {
    return n * (value(0, index) - 1) + n * (n + 1) / 2;
  }
  /// What was measured or modelled for one operation of one communicator.
  Traffic traffic(const std::string& name, const std::string& operation, bool modelled = false) {
    const auto rows = context.traffic.rows();
    const auto row = rows.find({name, operation, modelled});
    return row == rows.end() ? Traffic{} : row->second;
  }

  /// The sum of 10^r over the group's ranks in the world: which ones they are, as decimal digits.
  std::int64_t members(Communicator& group) {
    std::int64_t digit = 1;
    for (int r = 0; r < rank; ++r) digit *= 10;
    const Buffer buffer = filled(context, DType::i64, 3, [digit](std::int64_t) { return digit; });
    group.all_reduce(buffer);
    return copy_out_i64(buffer)[2];
  }
  /// What members() is of the ranks that `in` names.
  std::int64_t digits(const std::function<bool(int)>& in) const {
    std::int64_t sum = 0, digit = 1;
    for (int r = 0; r < n; ++r, digit *= 10) sum += in(r) ? digit : 0;
    return sum;
  }

  /// A context over the same ranks with neither guard nor clock: nothing goes ahead of a message.
  static std::unique_ptr<Context> without_guard() {
    CommonOptions options;
    options.guard = false;
    return another_context(options);
  }

  const std::unique_ptr<Context> bare;
  Context& context;
  Communicator& comm;
  const DType type;
  const int rank, n, right, left;
};

#define COMM_TEST(suite, name)                                       \
  struct suite##_##name##_scene : CommScene {                        \
    using CommScene::CommScene;                                      \
    void run();                                                      \
  };                                                                 \
  TEST_P(suite, name) {                                              \
    on_every_rank([] { suite##_##name##_scene(GetParam()).run(); }); \
  }                                                                  \
  void suite##_##name##_scene::run()

inline auto guards_and_types() {
  return testing::Combine(testing::Values(true, false),
                          testing::Values(DType::f32, DType::i64, DType::bf16));
}
inline std::string guard_and_type(const testing::TestParamInfo<GuardAndType>& info) {
  const auto [guard, type] = info.param;
  return std::string(guard ? "guard_" : "bare_") + name_of(type);
}

}  // namespace fivecuts
