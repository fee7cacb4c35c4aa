#pragma once
// What the tests of the communicator share: numbers that tell rank and index, compared with ==, and
// two contexts over the same ranks, one with the guard and one without.
#include <string>
#include <tuple>
#include <vector>

#include "common/support/test_main.hpp"

namespace fivecuts {

/// What `rank` puts at `index`. Small enough that sums over a few ranks are exact in f32; a
/// shifted, swapped or repeated piece gives other numbers.
inline std::int64_t value(int rank, std::int64_t index) { return index % 1009 * 8 + rank + 1; }

/// The context without a guard, over the same ranks as test_context().
Context& unguarded_context();

/// Awkward sizes, and those around the limits where MPI stops to buffer a message (1 KB to 128 KB).
std::vector<std::int64_t> sizes(int ranks);

/// A new buffer with f(index) in it.
template <class F>
Buffer filled(Context& context, DType type, std::int64_t count, const F& f) {
  Buffer buffer(context.device, Category::workspace, 1, count, type);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (type == DType::f32) {
      buffer.tensor().as<float>()[at] = static_cast<float>(f(i));
    } else {
      buffer.tensor().as<std::int64_t>()[at] = f(i);
    }
  }
  return buffer;
}
inline Buffer of_rank(Context& context, DType type, std::int64_t count, int rank) {
  return filled(context, type, count, [rank](std::int64_t i) { return value(rank, i); });
}
/// No message holds these numbers.
inline Buffer blank(Context& context, DType type, std::int64_t count) {
  return filled(context, type, count, [](std::int64_t) { return -1; });
}

inline double element(Tensor tensor, std::int64_t index) {
  const auto at = static_cast<std::size_t>(index);
  return tensor.type() == DType::f32 ? static_cast<double>(tensor.as<float>()[at])
                                     : static_cast<double>(tensor.as<std::int64_t>()[at]);
}

/// Every element is f(index).
template <class F>
testing::AssertionResult holds(Tensor tensor, const F& f) {
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    if (element(tensor, i) == static_cast<double>(f(i))) continue;
    return testing::AssertionFailure() << "element " << i << " of " << tensor.count() << " is "
                                       << element(tensor, i) << ", not " << f(i);
  }
  return testing::AssertionSuccess();
}
inline testing::AssertionResult holds_of_rank(Tensor tensor, int rank) {
  return holds(tensor, [rank](std::int64_t i) { return value(rank, i); });
}

/// Each test of it runs with and without the guard, for f32 and for i64.
class CommTest : public testing::TestWithParam<std::tuple<bool, DType>> {
 protected:
  CommTest()
      : context(std::get<0>(GetParam()) ? test_context() : unguarded_context()),
        comm(context.world),
        type(std::get<1>(GetParam())),
        rank(comm.rank()),
        n(comm.size()),
        right((rank + 1) % n),
        left((rank + n - 1) % n) {
    context.traffic.reset();
  }
  /// What was measured or modelled for one operation of one communicator.
  Traffic traffic(const std::string& name, const std::string& operation, bool modelled = false) {
    const auto rows = context.traffic.rows();
    const auto row = rows.find({name, operation, modelled});
    return row == rows.end() ? Traffic{} : row->second;
  }

  Context& context;
  Communicator& comm;
  const DType type;
  const int rank, n, right, left;
};

inline auto guards_and_types() {
  return testing::Combine(testing::Values(true, false), testing::Values(DType::f32, DType::i64));
}
inline std::string guard_and_type(const testing::TestParamInfo<std::tuple<bool, DType>>& info) {
  const auto [guard, type] = info.param;
  return std::string(guard ? "guard_" : "bare_") + name_of(type);
}

}  // namespace fivecuts
