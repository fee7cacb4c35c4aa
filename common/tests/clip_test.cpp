// Clipping by a norm that the host does not know.
#include "common/compute/operations.hpp"
#include "common/tests/helpers.hpp"

namespace fivecuts {
namespace {

// Where the numbers are: what comes out is what Adam takes.
ONE_RANK_TEST(Clip, ByANormThatStaysOnTheDevice) {
  const Buffer squares = random_buffer(1, 1024, 1), all = random_buffer(1, 3, 2),
               result = random_buffer(1, 2, 3);
  add_square_sums(random_buffer(1, 5000, 4), squares);
  double total = 0;
  for (const double square : doubles(squares)) total += square;
  add_up(squares, all.tensor().part(1, 1));
  EXPECT_EQ(copy_out(all)[1], static_cast<float>(total));

  copy_in(std::vector<float>{9, 0, 16}, all);
  const auto clipped_at = [&](float longest) {
    clip_factor(all, 10, longest, result);
    return copy_out(result);
  };
  EXPECT_EQ(clipped_at(0.25f), (std::vector<float>{0.5f, 0.5f}));
  EXPECT_EQ(clipped_at(0.5f), (std::vector<float>{0.5f, 1}));
  EXPECT_EQ(clipped_at(7), (std::vector<float>{0.5f, 1}));
  EXPECT_THROW(clip_factor(all, 0, 1, result), Failure);
  EXPECT_THROW(clip_factor(all, 1, 1, all), Failure);
  EXPECT_THROW(add_up(squares, all), Failure);

  for (const DType type : {DType::f32, DType::bf16}) {
    const auto updated = [&](float scale, Tensor factor) {
      const Buffer p = random_buffer(1, 33, 5), m = random_buffer(1, 33, 6),
                   v = random_buffer(1, 33, 7);
      zero(v);
      const Buffer g(test_context().device, Category::gradient, 1, 33, type);
      copy_in(std::vector<float>(33, 0.75f), g);
      adam(p, g, m, v, {}, 1, scale, factor);
      std::vector<float> state = copy_out(p);
      for (const Tensor& moment : {m.tensor(), v.tensor()}) {
        const std::vector<float> values = copy_out(moment);
        state.insert(state.end(), values.begin(), values.end());
      }
      return state;
    };
    clipped_at(0.25f);
    EXPECT_EQ(updated(0.5f, result.tensor().part(1, 1)), updated(0.25f, Tensor()));
    EXPECT_NE(updated(0.5f, result.tensor().part(1, 1)), updated(0.5f, Tensor()));
  }
}

}  // namespace
}  // namespace fivecuts
