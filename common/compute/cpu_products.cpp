// Matrix products by Eigen, apart from the element-wise operations: Eigen's headers take seconds to
// compile.
//
// bf16 is multiplied in f32. Widened whole, the operands would take twice the memory that they were
// stored in 2 bytes to save, so c is computed tile by tile:
//
//           k             n              n
//        [......]      [ ###  ]       [      ]
//      m [######]  x k [ ###  ]  =  m [ ###  ]    ### a tile: widened, multiplied, added up in f32,
//        [......]      [ ###  ]       [      ]        and rounded once, at the end
#include <Eigen/Core>
#include <algorithm>
#include <vector>

#include "common/compute/cpu_backend.hpp"

namespace fivecuts {
namespace {

using std::int64_t;
using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using View = Eigen::Map<Matrix>;

View view(Tensor t) { return {t.as<float>().data(), t.rows(), t.cols()}; }

constexpr int64_t tile_size = 512;  // widening it costs little beside the 512 products an element

/// A tile in f32. Its memory only grows, so that steps after the first one allocate nothing.
class Tile {
 public:
  View zeros(int64_t rows, int64_t cols) {
    View tile = any(rows, cols);
    tile.setZero();
    return tile;
  }
  View widened(Tensor from, Part rows, Part cols) {
    const View tile = any(rows.count, cols.count);
    each(from, rows, cols, [](auto& stored, float& wide) { wide = stored; });
    return tile;
  }
  void round_into(Tensor to, Part rows, Part cols) {
    each(to, rows, cols, [](auto& stored, float& wide) { stored = wide; });
  }

 private:
  View any(int64_t rows, int64_t cols) {
    const auto count = static_cast<std::size_t>(rows * cols);
    if (count > values_.size()) values_.resize(count);
    return {values_.data(), rows, cols};
  }
  /// f(element of t, element of the tile), for each pair of them.
  template <class F>
  void each(Tensor t, Part rows, Part cols, const F& f) {
    const auto walk = [&](auto* stored) {
      for (int64_t r = 0; r < rows.count; ++r) {
        auto* line = stored + (rows.first + r) * t.cols() + cols.first;
        float* wide = values_.data() + r * cols.count;
        for (int64_t c = 0; c < cols.count; ++c) f(line[c], wide[c]);
      }
    };
    if (t.type() == DType::bf16) return walk(t.as<Bf16>().data());
    walk(t.as<float>().data());
  }

  std::vector<float> values_;
};

/// f(part) for each tile of `count` rows or columns.
template <class F>
void for_tiles(int64_t count, const F& f) {
  for (int64_t first = 0; first < count; first += tile_size) {
    f(Part{first, std::min(tile_size, count - first)});
  }
}

enum class Kind { plain, b_transposed, a_transposed_added };

void multiply_bf16(Kind kind, Tensor a, Tensor b, Tensor c) {
  thread_local Tile tile_a, tile_b, tile_c;
  const int64_t k = kind == Kind::a_transposed_added ? a.rows() : a.cols();
  for_tiles(c.rows(), [&](Part m) {
    for_tiles(c.cols(), [&](Part n) {
      View sum = kind == Kind::a_transposed_added ? tile_c.widened(c, m, n)
                                                  : tile_c.zeros(m.count, n.count);
      for_tiles(k, [&](Part x) {
        switch (kind) {
          case Kind::plain:
            sum.noalias() += tile_a.widened(a, m, x) * tile_b.widened(b, x, n);
            break;
          case Kind::b_transposed:
            sum.noalias() += tile_a.widened(a, m, x) * tile_b.widened(b, n, x).transpose();
            break;
          case Kind::a_transposed_added:
            sum.noalias() += tile_a.widened(a, x, m).transpose() * tile_b.widened(b, x, n);
        }
      });
      tile_c.round_into(c, m, n);
    });
  });
}

}  // namespace

void CpuBackend::multiply(Tensor a, Tensor b, Tensor c) {
  if (a.type() == DType::bf16) return multiply_bf16(Kind::plain, a, b, c);
  view(c).noalias() = view(a) * view(b);
}

void CpuBackend::multiply_transposed(Tensor a, Tensor b, Tensor c) {
  if (a.type() == DType::bf16) return multiply_bf16(Kind::b_transposed, a, b, c);
  view(c).noalias() = view(a) * view(b).transpose();
}

void CpuBackend::add_transposed_product(Tensor a, Tensor b, Tensor c) {
  if (a.type() == DType::bf16) return multiply_bf16(Kind::a_transposed_added, a, b, c);
  view(c).noalias() += view(a).transpose() * view(b);
}

}  // namespace fivecuts
