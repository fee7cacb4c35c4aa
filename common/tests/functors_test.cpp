// What the element-wise operations do to memory, counted: each element that is booked is read once
// or written once. A GPU and the cpu run the same functors.
#include "common/compute/functors.hpp"

#include <span>

#include "common/compute/for_each.hpp"
#include "common/tests/helpers.hpp"

namespace fivecuts {
namespace {

/// A float that knows how often it was looked at and set.
struct Counted {
  float value = 0.5f;
  mutable int reads = 0;
  int writes = 0;
  operator float() const {
    ++reads;
    return value;
  }
  Counted& operator=(float to) {
    ++writes;
    value = to;
    return *this;
  }
};
using Row = std::vector<Counted>;

/// Every element of `row` was read and written as often as that.
testing::AssertionResult touched(const Row& row, int reads, int writes) {
  for (const Counted& element : row) {
    if (element.reads == reads && element.writes == writes) continue;
    return testing::AssertionFailure()
           << element.reads << " reads and " << element.writes << " writes of an element, not "
           << reads << " and " << writes;
  }
  return testing::AssertionSuccess();
}

constexpr std::int64_t rows = 5, cols = 33, count = rows * cols;
Row row(std::int64_t size = count) { return Row(at(size)); }

double booked(const std::function<void()>& operation) {
  const double before = test_context().device.work().bytes();
  operation();
  return test_context().device.work().bytes() - before;
}
double f32_bytes(std::initializer_list<std::int64_t> counts) {
  double bytes = 0;
  for (const std::int64_t c : counts) bytes += 4.0 * static_cast<double>(c);
  return bytes;
}

ONE_RANK_TEST(EachByteOnce, InAdd) {
  Row to = row(), from = row();
  detail::for_each(1, count, detail::Add<Counted>{to.data(), from.data()});
  EXPECT_TRUE(touched(to, 1, 1));
  EXPECT_TRUE(touched(from, 1, 0));
  const Buffer a = random_buffer(rows, cols, 1), b = random_buffer(rows, cols, 2);
  EXPECT_EQ(booked([&] { add(a, b); }), f32_bytes({count, count, count}));
}

ONE_RANK_TEST(EachByteOnce, InMaximum) {
  Row to = row(), from = row();
  detail::for_each(1, count, detail::Maximum<Counted>{to.data(), from.data()});
  EXPECT_TRUE(touched(to, 1, 1));
  EXPECT_TRUE(touched(from, 1, 0));
  const Buffer a = random_buffer(rows, cols, 1), b = random_buffer(rows, cols, 2);
  EXPECT_EQ(booked([&] { maximum(a, b); }), f32_bytes({count, count, count}));
}

ONE_RANK_TEST(EachByteOnce, InScale) {
  Row to = row();
  detail::for_each(1, count, detail::Scale<Counted>{to.data(), 2});
  EXPECT_TRUE(touched(to, 1, 1));
  const Buffer a = random_buffer(rows, cols, 1);
  EXPECT_EQ(booked([&] { scale(a, 2); }), f32_bytes({count, count}));
}

ONE_RANK_TEST(EachByteOnce, InRounding) {
  Row to = row(), from = row();
  detail::for_each(1, count, detail::RoundToBf16<Counted, Counted>{from.data(), to.data()});
  EXPECT_TRUE(touched(to, 0, 1));
  EXPECT_TRUE(touched(from, 1, 0));
  const Buffer a = random_buffer(rows, cols, 1),
               b(test_context().device, Category::workspace, rows, cols, DType::bf16);
  EXPECT_EQ(booked([&] { round_to_bf16(a, b); }), 1.5 * f32_bytes({count}));
}

// The bias stays in the cache: it is booked once, and read for each row.
ONE_RANK_TEST(EachByteOnce, InBiasAndGelu) {
  Row bias = row(cols), z = row(), y = row();
  detail::for_each(rows, cols,
                   detail::BiasGelu<Counted, true>{bias.data(), z.data(), y.data(), cols});
  EXPECT_TRUE(touched(z, 1, 1));
  EXPECT_TRUE(touched(y, 0, 1));
  EXPECT_TRUE(touched(bias, rows, 0));
  const Buffer a = random_buffer(rows, cols, 1), b = random_buffer(rows, cols, 2),
               c = random_buffer(1, cols, 3);
  EXPECT_EQ(booked([&] { bias_gelu(a, c, b); }), f32_bytes({count, count, count, cols}));

  Row alone = row(), out = row();
  detail::for_each(1, count,
                   detail::BiasGelu<Counted, false>{nullptr, alone.data(), out.data(), count});
  EXPECT_TRUE(touched(alone, 1, 0));
  EXPECT_TRUE(touched(out, 0, 1));
  EXPECT_EQ(booked([&] { bias_gelu(a, Tensor(), b); }), f32_bytes({count, count}));
}

ONE_RANK_TEST(EachByteOnce, InAddBias) {
  Row bias = row(cols), z = row();
  detail::for_each(rows, cols, detail::AddBias<Counted>{bias.data(), z.data(), cols});
  EXPECT_TRUE(touched(z, 1, 1));
  EXPECT_TRUE(touched(bias, rows, 0));
  const Buffer a = random_buffer(rows, cols, 1), b = random_buffer(1, cols, 2);
  EXPECT_EQ(booked([&] { add_bias(a, b); }), f32_bytes({count, count, cols}));
}

ONE_RANK_TEST(EachByteOnce, InTheGradientOfGelu) {
  Row dy = row(), z = row();
  detail::for_each(1, count, detail::GeluBackward<Counted>{dy.data(), z.data()});
  EXPECT_TRUE(touched(dy, 1, 0));
  EXPECT_TRUE(touched(z, 1, 1));
  const Buffer a = random_buffer(rows, cols, 1), b = random_buffer(rows, cols, 2);
  EXPECT_EQ(booked([&] { gelu_backward(a, b); }), f32_bytes({count, count, count}));
}

ONE_RANK_TEST(EachByteOnce, InColumnSums) {
  for (const bool wide : {true, false}) {
    Row from = row(), to = row(cols);
    if (wide) {
      detail::for_each(
          1, (cols + 15) / 16,
          detail::ColumnSums<Counted, Counted, 16>{from.data(), to.data(), rows, cols});
    } else {
      detail::for_each(1, cols,
                       detail::ColumnSums<Counted, Counted, 1>{from.data(), to.data(), rows, cols});
    }
    EXPECT_TRUE(touched(from, 1, 0));
    EXPECT_TRUE(touched(to, 1, 1));
  }
  const Buffer a = random_buffer(rows, cols, 1), b = random_buffer(1, cols, 2);
  EXPECT_EQ(booked([&] { add_column_sums(a, b); }), f32_bytes({count, cols, cols}));
}

ONE_RANK_TEST(EachByteOnce, InSquareSums) {
  const auto sums_of = []<class Squares>(Squares squares) {
    detail::for_each(1, (squares.sums + Squares::width - 1) / Squares::width, squares);
  };
  for (const bool wide : {true, false}) {
    const Row from = row();
    std::vector<float> to(at(cols));
    if (wide) {
      sums_of(detail::SquareSums<Counted, 16>{from.data(), to.data(), count, cols});
    } else {
      sums_of(detail::SquareSums<Counted, 1>{from.data(), to.data(), count, cols});
    }
    EXPECT_TRUE(touched(from, 1, 0));
    EXPECT_EQ(to, std::vector<float>(at(cols), 0.25f * rows));
  }
  const Buffer a = random_buffer(rows, cols, 1), b = random_buffer(1, cols, 2);
  EXPECT_EQ(booked([&] { add_square_sums(a, b); }), f32_bytes({count, cols, cols}));
}

ONE_RANK_TEST(EachByteOnce, InAdam) {
  Row p = row(), g = row(), m = row(), v = row();
  detail::for_each(1, count,
                   detail::Adam<Counted, Counted, Counted>{
                       p.data(), g.data(), m.data(), v.data(), {0.9f, 0.99f, 1e-8f, 1, 1e-3f, 1}});
  for (const Row* both : {&p, &m, &v}) EXPECT_TRUE(touched(*both, 1, 1));
  EXPECT_TRUE(touched(g, 1, 0));
  const Buffer a = random_buffer(1, count, 1), b = random_buffer(1, count, 2),
               c = random_buffer(1, count, 3), d = random_buffer(1, count, 4);
  zero(d);
  EXPECT_EQ(booked([&] { adam(a, b, c, d, {}, 1, 1); }),
            f32_bytes({count, count, count, count, count, count, count}));
}

}  // namespace
}  // namespace fivecuts
