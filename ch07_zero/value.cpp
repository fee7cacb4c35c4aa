// Memory and bytes of each stage in one table: which stage is worth its price.
#include "ch07_zero/worlds.hpp"
#include "common/observe/table.hpp"

namespace fivecuts::zero_redundancy {

bool ValueRow::beaten(const std::vector<ValueRow>& rows, std::size_t k) const {
  for (const ValueRow& other : rows) {
    const bool no_worse = other.state <= state && other.elements[k] <= elements[k];
    if (no_worse && (other.state < state || other.elements[k] < elements[k])) return true;
  }
  return false;
}

std::vector<ValueRow> value_rows(World world) {
  std::vector<ValueRow> rows;
  for (world.settings.stage = 0; world.settings.stage <= 3; ++world.settings.stage) {
    ValueRow row{.stage = world.settings.stage};
    for (std::size_t k = 0; k < ValueRow::micro_batches.size(); ++k) {
      world.micro_batches = world.rows = ValueRow::micro_batches[k];
      const StepCost cost = dry_steps(world).front();
      row.state = cost.at_rest.state();
      row.elements[k] = cost.sent.sent / size_of(world.settings.precision);
    }
    rows.push_back(row);
  }
  return rows;
}

std::string value_text(const std::vector<ValueRow>& rows) {
  std::vector<std::string> header = {"stage", "GB a rank"};
  for (const int k : ValueRow::micro_batches) header.push_back(fmt::format("k = {}", k));
  Table table(header);
  std::vector<std::string> best = {"not beaten", ""};
  best.resize(header.size());
  for (const ValueRow& row : rows) {
    std::vector<std::string> cells = {std::to_string(row.stage),
                                      fmt::format("{}", static_cast<double>(row.state) / 1e9)};
    for (std::size_t k = 0; k < row.elements.size(); ++k) {
      cells.push_back(fmt::format("{:.4g}", static_cast<double>(row.elements[k]) / 1e9));
      if (!row.beaten(rows, k)) {
        best[k + 2] += fmt::format("{}{}", best[k + 2].empty() ? "" : ", ", row.stage);
      }
    }
    table.row(cells);
  }
  table.row(best);
  return table.text();
}

}  // namespace fivecuts::zero_redundancy
