#include "common/observe/claims.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "common/observe/table.hpp"
#include "common/support/error.hpp"

namespace fivecuts {

namespace {

std::string chinese(const std::string& verdict) {
  if (verdict == "TRUE") return "成立";
  if (verdict == "IMPRECISE") return "不精确";
  return verdict == "WRONG" ? "有误" : "未说清";
}

}  // namespace

std::vector<Claim> load_claims(const std::filesystem::path& file) {
  std::vector<Claim> claims;
  try {
    std::ifstream in(file);
    in.exceptions(std::ios::failbit);
    for (const auto& entry : nlohmann::json::parse(in)) {
      claims.push_back({entry.at("id"), entry.at("chapter"), entry.at("verdict"), entry.at("claim"),
                        entry.at("claim_zh"), entry.at("right"), entry.at("right_zh"),
                        entry.at("anchor"), entry.at("shown_in")});
    }
  } catch (const std::exception& error) {
    fail(fmt::format("cannot read the claims in {}: {}", file.string(), error.what()));
  }
  return claims;
}

const Claim& ClaimRows::find(const std::string& id) const {
  const auto found =
      std::find_if(all_.begin(), all_.end(), [&](const Claim& c) { return c.id == id; });
  if (found == all_.end()) fail(fmt::format("no claim has the id {}", id));
  return *found;
}

void ClaimRows::equal(const std::string& id, double expected, double measured,
                      const std::string& unit, const std::string& note, bool also) {
  // An infinite expectation would have an infinite tolerance.
  const bool same =
      also && std::isfinite(expected) && std::abs(measured - expected) <= 1e-9 * std::abs(expected);
  const std::string space = unit.empty() ? "" : " ";
  rows_.push_back({&find(id), same ? State::holds : State::mismatch,
                   fmt::format("{:.10g}{}{} (expected {:.10g}){}{}", measured, space, unit,
                               expected, note.empty() ? "" : "; ", note)});
}

void ClaimRows::holds(const std::string& id, bool holds, const std::string& measured) {
  rows_.push_back({&find(id), holds ? State::holds : State::mismatch, measured});
}

void ClaimRows::not_here(const std::string& id, const std::string& why) {
  rows_.push_back({&find(id), State::not_here, why});
}

bool ClaimRows::all_hold() const {
  return std::none_of(rows_.begin(), rows_.end(),
                      [](const Row& row) { return row.state == State::mismatch; });
}

bool ClaimRows::shows(const std::string& id) const {
  return std::any_of(rows_.begin(), rows_.end(), [&](const Row& row) {
    return row.claim->id == id && row.state != State::not_here;
  });
}

std::string ClaimRows::text(const std::string& language) const {
  const bool zh = language == "zh";
  constexpr int indent = 12, width = 84;
  std::vector<Row> rows = rows_;
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.claim < b.claim; });
  std::string out;
  const auto paragraph = [&](const std::string& label, const std::string& text) {
    const std::string margin(static_cast<std::size_t>(std::max(1, indent - display_width(label))),
                             ' ');
    std::string lead = label + margin;
    for (const std::string& line : wrap(text, width)) {
      out += lead + line + "\n";
      lead = std::string(indent, ' ');
    }
  };
  for (const Row& row : rows) {
    const Claim& c = *row.claim;
    paragraph("  " + c.id, (zh ? "笔记：" : "notes: ") + (zh ? c.claim_zh : c.claim) + "  [" +
                               (zh ? chinese(c.verdict) : c.verdict) + "]");
    paragraph("", (zh ? "正确：" : "right: ") + (zh ? c.right_zh : c.right));
    switch (row.state) {
      case State::holds:
        paragraph(zh ? "    通过" : "    ok", (zh ? "实测：" : "measured: ") + row.measured);
        break;
      case State::mismatch:
        paragraph(zh ? "    不符" : "   MISMATCH", (zh ? "实测：" : "measured: ") + row.measured);
        break;
      case State::not_here:
        paragraph(zh ? "    未测" : "    -",
                  (zh ? "本次未测：" : "not in this run: ") + row.measured);
        break;
    }
  }
  return out;
}

}  // namespace fivecuts
