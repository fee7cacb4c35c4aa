#pragma once
// The runs behind the chapter's tables, figure and claims: each number is read from a ledger.
#include <filesystem>
#include <optional>
#include <string>

#include "ch01_overview/memory_account.hpp"
#include "common/comm/context.hpp"
#include "common/observe/claims.hpp"
#include "common/observe/output_file.hpp"

namespace fivecuts::overview {

inline constexpr int most_parts = 64;  ///< ranks of a map

struct Options {
  std::int64_t layers = 70, width = 10000;  ///< square layers without bias: "7B"
  std::int64_t scale = 100;                 ///< what is really held is 1 / scale as wide
  std::int64_t batch = 512;                 ///< rows of the global batch
  std::int64_t parts = 0;                   ///< ranks of the map; 0: the run's, or 4 if it has one
  std::int64_t experts = 0;                 ///< of a layer; 0: two for each rank
  Cut cut = Cut::data;                      ///< how the run's own ranks hold the model
  Recipe recipe = all_recipes().front();
  std::optional<std::filesystem::path> figure{};  ///< where the map goes as a picture
};

/// With parts and experts chosen. Throws UsageError for what is impossible, the same on every rank.
Options settled(Options options, const Context& context);

ModelShape model_of(const Options& options);  ///< counted
ModelShape small_of(const Options& options);  ///< held on the run's own device

/// One model in one recipe, as the fullest of the run's ranks holds it.
struct AccountRow {
  std::int64_t width;
  bool allocated;  ///< false: counted on a dry device
  Recipe recipe;
  Account account;
  int rank;
};
/// Collective. The run's recipe on its own device, then at full size under the same --memory; then
/// the other conventions, without a limit.
std::vector<AccountRow> accounts(Context& context, const Options& options);

/// A step of the whole model, dry, for growing batches.
struct BatchRow {
  std::int64_t rows;
  Account account;
};
std::vector<BatchRow> growing_batches(const Options& options);

/// What one rank of options.parts holds under a cut, and what its ledger then says.
struct MapRow {
  Cut cut;
  int rank;
  Placement placement;
  Part rows;  ///< of the batch
  Account account;
};
std::vector<MapRow> placement_map(const Options& options);

/// All claims whose home is this chapter, at the notes' own sizes.
void measure_claims(const Options& options, ClaimRows& rows);

// --- as text ---

std::string account_table(const Options& options, const std::vector<AccountRow>& rows);
std::string batch_table(const std::vector<BatchRow>& rows);
std::string map_table(const Options& options, const std::vector<MapRow>& map);
std::string cut_table(const Options& options, const std::vector<MapRow>& map);
/// Where the statements of section 01 are shown that are not at home here.
std::string elsewhere(const std::vector<Claim>& claims);
/// The map as a picture.
std::string map_svg(const Options& options, const std::vector<MapRow>& map);

}  // namespace fivecuts::overview
