#include "common/model/compare.hpp"

#include <algorithm>
#include <cmath>

#include "common/support/error.hpp"

namespace fivecuts {

Verdict compare(const Communicator& comm, const std::string& what, std::span<const float> got,
                std::span<const double> want, Tolerance tolerance, std::int64_t first) {
  struct Finding {
    std::int64_t index = -1, elements = 0, wanted = 0, wrong = 0;
    double got = 0, want = 0, worst = 0;
  } mine;
  mine.elements = static_cast<std::int64_t>(got.size());
  mine.wanted = static_cast<std::int64_t>(want.size());
  for (std::size_t i = 0; mine.elements == mine.wanted && i < got.size(); ++i) {
    const double g = static_cast<double>(got[i]), distance = std::abs(g - want[i]);
    // Written so that a NaN on either side is not "within"; an infinite `want` would allow all.
    const bool within = std::isfinite(want[i]) &&
                        distance <= tolerance.absolute + tolerance.relative * std::abs(want[i]);
    if (!within && mine.wrong++ == 0) {
      mine.index = first + static_cast<std::int64_t>(i);
      mine.got = g;
      mine.want = want[i];
    }
    if (distance > mine.worst) mine.worst = distance;
  }
  const auto all = comm.gather(mine);
  double worst = 0;
  std::int64_t elements = 0, bad_ranks = 0;
  int bad = -1;
  for (int r = 0; r < comm.size(); ++r) {
    const Finding& f = all[static_cast<std::size_t>(r)];
    worst = std::max(worst, f.worst);
    elements = std::max(elements, f.elements);
    if (f.elements == f.wanted && f.wrong == 0) continue;
    ++bad_ranks;
    if (bad < 0) bad = r;
  }
  if (bad < 0) {
    return {true, fmt::format("{} within {:.1e} of golden ({} rank{} x {} elements)", what, worst,
                              comm.size(), comm.size() == 1 ? "" : "s", elements)};
  }
  const Finding& f = all[static_cast<std::size_t>(bad)];
  if (f.elements != f.wanted) {
    return {false, fmt::format("{}: rank {} has {} elements, golden has {}", what, bad, f.elements,
                               f.wanted)};
  }
  return {false, fmt::format("{}: rank {}, element {}: got {:.9g}, want {:.9g} ({} of {} elements there are "
                             "off, on {} of {} ranks)",
                             what, bad, f.index, f.got, f.want, f.wrong, f.elements, bad_ranks, comm.size())};
}

}  // namespace fivecuts
