#include "ch01_overview/test_shapes.hpp"

namespace fivecuts::overview {
namespace {

std::vector<std::int64_t> awkward(int n) { return {0, 1, n - 1, n, n + 1, 1000, 1857}; }

/// How often each element of each layer is held, over all ranks, in one kind of state.
std::vector<std::vector<int>> times_held(Cut cut, const ModelShape& model, int experts, int n,
                                         Part Holding::*kind) {
  std::vector<std::vector<int>> times;
  for (const LayerShape& layer : model) {
    times.emplace_back(static_cast<std::size_t>(layer.parameters()));
  }
  for (int r = 0; r < n; ++r) {
    for (const Holding& h : place(cut, model, experts, n, r)) {
      const LayerShape whole = model[h.layer], block = layer_of(model, h);
      const Part part = h.*kind;
      for (std::int64_t i = part.first; i < part.first + part.count; ++i) {
        const bool bias = i >= block.in * block.out;
        const std::int64_t row = bias ? whole.in : h.rows.first + i / block.out;
        const std::int64_t col = h.cols.first + i % block.out;
        ++times[h.layer].at(static_cast<std::size_t>(row * whole.out + col));
      }
    }
  }
  return times;
}

RANK_TEST(Slices, CoverEachElementAsOftenAsTheCutSays) {
  for (int n = 1; n <= 8; ++n) {
    for (const ModelShape& dense : {square_layers(5, 9, true), square_layers(3, 1),
                                    mlp_shape(7, 12, 2, 4), square_layers(1, n + 1)}) {
      for (const CutFacts& facts : all_cuts()) {
        const int experts = 2 * n;
        const ModelShape model = cut_model(facts.cut, dense, experts);
        for (Part Holding::*kind :
             {&Holding::parameters, &Holding::gradients, &Holding::optimizer}) {
          const auto times = times_held(facts.cut, model, experts, n, kind);
          int wrong = 0;
          for (std::size_t k = 0; k < model.size(); ++k) {
            for (std::int64_t i = 0; i < model[k].parameters(); ++i) {
              const int want = copies(facts.cut, kind, model[k], k, i, experts, n);
              wrong += times[k][static_cast<std::size_t>(i)] == want ? 0 : 1;
            }
          }
          EXPECT_EQ(wrong, 0) << facts.name << " over " << n;
        }
      }
    }
  }
}

// Contiguous parts in the order of the ranks, none lost, at sizes that no N divides and below N.
RANK_TEST(Slices, FollowOneAnotherAtAnySize) {
  for (int n = 1; n <= 8; ++n) {
    for (const std::int64_t size : awkward(n)) {
      const ModelShape deep = square_layers(size, 2), wide = square_layers(2, size);
      std::size_t layer = 0;
      std::int64_t col = 0, row = 0, element = 0;
      for (int r = 0; r < n; ++r) {
        for (const Holding& h : pipeline_parallel(deep, n, r)) EXPECT_EQ(h.layer, layer++);
        const Placement tensor = tensor_parallel(wide, n, r);
        ASSERT_EQ(tensor.size(), 2u);
        EXPECT_EQ(tensor[0].cols.first, col);
        EXPECT_EQ(tensor[1].rows.first, row);
        col += tensor[0].cols.count;
        row += tensor[1].rows.count;
        const Part flat = zero_sharding(3, wide, n, r).front().parameters;
        EXPECT_EQ(flat.first, element);
        element += flat.count;
      }
      EXPECT_EQ(layer, deep.size());
      EXPECT_EQ(col, size);
      EXPECT_EQ(row, size);
      EXPECT_EQ(element, size * size);
    }
  }
}

RANK_TEST(Slices, OfAPairFitTogether) {
  const ModelShape pair = square_layers(2, 10);
  for (int r = 0; r < 3; ++r) {  // what the first gives is what the second takes
    const Placement placement = tensor_parallel(pair, 3, r);
    EXPECT_EQ(placement[0].cols.first, placement[1].rows.first);
    EXPECT_EQ(placement[0].cols.count, placement[1].rows.count);
  }
}

RANK_TEST(Slices, ExpertsAreAsLargeAsTheLayerTheyComeFrom) {
  const ModelShape moe = moe_of(square_layers(3, 10, true), 4);
  ASSERT_EQ(moe.size(), 15u);
  std::int64_t routers = 0;
  for (std::size_t k = 0; k < moe.size(); k += 5) routers += moe[k].parameters();
  EXPECT_EQ(routers, 3 * 10 * 4);
  EXPECT_EQ(parameter_count(moe) - routers, parameter_count(square_layers(3, 10, true)));
  EXPECT_THROW(expert_parallel(moe, 4, 3, 0), Failure);
  EXPECT_EQ(expert_parallel(moe, 4, 4, 3).size(), 6u);  // 3 routers, 3 experts
}

RANK_TEST(Slices, RanksThatThereAreNotFail) {
  EXPECT_THROW(pipeline_parallel(square_layers(3, 2), 3, 3), Failure);
  EXPECT_THROW(tensor_parallel(square_layers(3, 2), 3, -1), Failure);
  EXPECT_THROW(zero_sharding(4, square_layers(3, 2), 3, 0), Failure);
}

RANK_TEST(Slices, RowsOfTheBatchAreCutWhereReplicasShareTheWork) {
  for (const CutFacts& facts : all_cuts()) {
    std::int64_t all = 0;
    for (int r = 0; r < 3; ++r) all += batch_rows(facts.cut, 10, 3, r).count;
    const bool model_shared = facts.cut == Cut::pipeline || facts.cut == Cut::tensor;
    EXPECT_EQ(all, model_shared ? 30 : 10) << facts.name;
  }
}

}  // namespace
}  // namespace fivecuts::overview
