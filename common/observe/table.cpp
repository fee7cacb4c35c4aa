#include "common/observe/table.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <utility>

#include "common/support/error.hpp"

namespace fivecuts {
namespace {

/// The code point that starts at `at`, which moves past it. Invalid bytes count as themselves.
std::uint32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto lead = static_cast<unsigned char>(text[at++]);
  const int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : 0;
  std::uint32_t code = more == 0 ? lead : lead & (0x3Fu >> more);
  for (int k = 0; k < more && at < text.size(); ++k) {
    code = (code << 6) | (static_cast<unsigned char>(text[at++]) & 0x3Fu);
  }
  return code;
}

int cells(std::uint32_t code) {
  const bool wide = (code >= 0x1100 && code <= 0x115F) || (code >= 0x2E80 && code <= 0xA4CF) ||
                    (code >= 0xAC00 && code <= 0xD7A3) || (code >= 0xF900 && code <= 0xFAFF) ||
                    (code >= 0xFE30 && code <= 0xFE6F) || (code >= 0xFF00 && code <= 0xFF60) ||
                    (code >= 0xFFE0 && code <= 0xFFE6);
  return wide ? 2 : 1;
}

std::string padded(const std::string& cell, int width, bool right) {
  const std::string space(static_cast<std::size_t>(std::max(0, width - display_width(cell))), ' ');
  return right ? space + cell : cell + space;
}

bool is_number(const std::string& cell) {
  const std::size_t digit = cell.starts_with('-') || cell.starts_with('+') ? 1 : 0;
  return cell.size() > digit && std::isdigit(static_cast<unsigned char>(cell[digit]));
}

/// Chinese punctuation that may not begin a line: it hangs over the edge instead.
bool closes(std::string_view character) {
  static constexpr std::string_view all[] = {"，", "。", "；", "：", "、", "）", "”", "》", "！", "？"};
  return std::find(std::begin(all), std::end(all), character) != std::end(all);
}

}  // namespace

int display_width(std::string_view text) {
  int width = 0;
  for (std::size_t at = 0; at < text.size();) width += cells(next_code_point(text, at));
  return width;
}

std::vector<std::string> wrap(std::string_view text, int width) {
  std::vector<std::string> lines(1);
  int used = 0;
  for (std::size_t at = 0; at < text.size();) {
    // The next piece that must stay together: a wide character, or a word.
    std::size_t end = at;
    int piece = cells(next_code_point(text, end));
    if (piece == 1 && text[at] != ' ') {
      for (std::size_t next = end; next < text.size() && text[next] != ' ';) {
        if (const int w = cells(next_code_point(text, next)); w == 1) {
          piece += w;
          end = next;
        } else {
          break;
        }
      }
    }
    if (used > 0 && used + piece > width && !closes(text.substr(at, end - at))) {
      while (!lines.back().empty() && lines.back().back() == ' ') lines.back().pop_back();
      lines.emplace_back();
      used = 0;
    }
    if (used > 0 || text[at] != ' ') {
      lines.back() += text.substr(at, end - at);
      used += piece;
    }
    at = end;
  }
  return lines;
}

void Table::row(std::vector<std::string> cells) {
  require(cells.size() == header_.size(), "a table row needs one cell for each column");
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<int> widths;
  std::vector<bool> right;
  for (std::size_t c = 0; c < header_.size(); ++c) {
    int width = display_width(header_[c]);
    for (const auto& row : rows_) width = std::max(width, display_width(row[c]));
    widths.push_back(width);
    right.push_back(!rows_.empty() && std::all_of(rows_.begin(), rows_.end(), [&](const auto& row) {
      return is_number(row[c]);
    }));
  }
  std::string out;
  const auto line = [&](const std::vector<std::string>& row) {
    std::string text = " ";
    for (std::size_t c = 0; c < row.size(); ++c) text += " " + padded(row[c], widths[c], right[c]) + " ";
    while (!text.empty() && text.back() == ' ') text.pop_back();
    out += text + "\n";
  };
  line(header_);
  for (const auto& row : rows_) line(row);
  return out;
}

}  // namespace fivecuts
