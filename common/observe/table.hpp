#pragma once
// Tables for the terminal. Widths are counted in terminal cells, so Chinese text lines up too.
#include <string>
#include <string_view>
#include <vector>

namespace fivecuts {

/// Terminal cells that UTF-8 `text` occupies (wide East Asian characters take two).
int display_width(std::string_view text);

/// `text` broken at spaces (and between wide characters) into lines of at most `width` cells;
/// a longer word stays whole.
std::vector<std::string> wrap(std::string_view text, int width);

/// Columns are as wide as their widest cell; columns of numbers are right-aligned.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : header_(std::move(header)) {}
  /// Throws Failure unless there is one cell for each column.
  void row(std::vector<std::string> cells);
  std::string text() const;

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace fivecuts
