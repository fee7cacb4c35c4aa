#pragma once
// What the course notes say, held against what this run measured.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace fivecuts {

/// One statement of the notes, from docs/claims.json.
struct Claim {
  std::string id, chapter,
      verdict;                   ///< verdict on the notes: TRUE, IMPRECISE, WRONG, UNDERSPECIFIED
  std::string claim, claim_zh;   ///< what the notes say, in our words
  std::string right, right_zh;   ///< what is right
  std::string anchor, shown_in;  ///< the place in the notes; the home chapter ("ch02", "doc")
};

/// All statements, in the order of the notes. Throws Failure with the file's name if it is not
/// readable.
std::vector<Claim> load_claims(const std::filesystem::path& file);

/// The rows that one run shows. `expected` is the formula at the run's own parameters; `measured`
/// comes from a ledger, a counter or a comparison, never from that formula.
class ClaimRows {
 public:
  explicit ClaimRows(std::vector<Claim> all) : all_(std::move(all)) {}
  ClaimRows(const ClaimRows&) = delete;  // rows point to the claims
  ClaimRows(ClaimRows&&) = default;

  /// Equal numbers (within 1e-9 of `expected`, relative; NaN and infinity never are). `unit` is
  /// printed after both.
  void equal(const std::string& id, double expected, double measured, const std::string& unit = "",
             const std::string& note = "", bool also = true);
  /// A comparison that came out as `holds`; `measured` says in words what was seen.
  void holds(const std::string& id, bool holds, const std::string& measured);
  /// This run cannot show it (say, too few ranks); `why` says which run can.
  void not_here(const std::string& id, const std::string& why);

  bool all_hold() const;
  /// True if a row for `id` compared something.
  bool shows(const std::string& id) const;
  /// Rows in the order of the notes. `language`: "en" or "zh".
  std::string text(const std::string& language) const;

 private:
  enum class State { holds, mismatch, not_here };
  struct Row {
    const Claim* claim;
    State state;
    std::string measured;
  };
  const Claim& find(const std::string& id) const;
  std::vector<Claim> all_;
  std::vector<Row> rows_;
};

}  // namespace fivecuts
