#include "common/support/error.hpp"

#include <string_view>

namespace fivecuts {
namespace {

/// "common/comm/guard.cpp:12": the part of the path a reader of the repository knows.
std::string place(const std::source_location& where) {
  std::string_view file = where.file_name();
  for (std::string_view room : {"/common/", "/ch0"}) {
    if (const auto at = file.rfind(room); at != std::string_view::npos) file.remove_prefix(at + 1);
  }
  return fmt::format("{}:{}", file, where.line());
}

}  // namespace

Failure::Failure(const std::string& what, std::source_location where)
    : std::runtime_error(fmt::format("{} ({})", what, place(where))) {}

void fail(const std::string& what, std::source_location where) { throw Failure(what, where); }

}  // namespace fivecuts
