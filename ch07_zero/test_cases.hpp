#pragma once
// What the tests of this chapter run.
#include <algorithm>

#include "ch07_zero/training.hpp"
#include "common/model/random.hpp"
#include "common/support/test_main.hpp"

namespace fivecuts::zero_redundancy {

inline const Digits& digits() {
  static const Digits loaded = load_digits();
  return loaded;
}

inline Communicator dp() {
  return test_context().world.split("dp", [](int) { return 0; });
}

/// 1,857 parameters in layers of 1,430, 368, 17 (its bias has one element) and 42, no number of
/// ranks from 2 to 5 divides them all.
inline ModelShape uneven() { return {{64, 22}, {22, 16}, {16, 1}, {1, 21, true, false}}; }
/// With a layer of one parameter: all ranks but one hold an empty shard of it.
inline ModelShape with_empty_shards() {
  return {{64, 3}, {3, 1, false}, {1, 1, false}, {1, 10, false, false}};
}

/// Elements of the shards of rank `r` (counted around the ring), and of all layers.
struct Elements {
  explicit Elements(const ModelShape& model, int n, int r) : ranks(n) {
    for (const LayerShape& shape : model) {
      const std::int64_t count = shape.parameters();
      own += part_of(count, n, r).count;
      before += part_of(count, n, (r + n - 1) % n).count;
      all += count;
      layers.push_back(count);
    }
  }
  std::int64_t largest() const { return std::ranges::max(layers); }
  std::int64_t largest_pair() const {
    std::int64_t most = 0;
    for (std::size_t k = 1; k < layers.size(); ++k)
      most = std::max(most, layers[k - 1] + layers[k]);
    return most;
  }
  // The ring sends all chunks but the one it ends with, or but the one that came last.
  std::int64_t reduce_scatter() const { return all - own; }
  std::int64_t all_gather() const { return ranks == 1 ? 0 : all - before; }

  int ranks;
  std::int64_t own = 0, before = 0, all = 0;
  std::vector<std::int64_t> layers;
};

struct BytesOf {
  std::int64_t weight, optimizer;  // of a parameter, or a gradient; of its optimizer state
};
inline BytesOf bytes_of(DType precision) {
  return precision == DType::bf16 ? BytesOf{2, 12} : BytesOf{4, 8};
}

inline std::vector<std::int64_t> some_rows(std::int64_t count) {
  auto rows = shuffled(digits().train.count(), 5, 0);
  rows.resize(static_cast<std::size_t>(count));
  return rows;
}

inline std::vector<Shard> some_shards(const Communicator& comm, std::int64_t count,
                                      std::int64_t micro_batches = 1,
                                      DType precision = DType::f32) {
  return data_parallel::load_shards(test_context().device, digits().train, some_rows(count), comm,
                                    micro_batches, precision);
}

/// f(settings) for each stage.
template <class F>
void for_stages(Settings settings, const F& f) {
  for (settings.stage = 0; settings.stage <= 3; ++settings.stage) {
    SCOPED_TRACE("stage " + std::to_string(settings.stage));
    f(settings);
  }
}

}  // namespace fivecuts::zero_redundancy
