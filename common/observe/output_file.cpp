#include "common/observe/output_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <system_error>

#include "common/support/error.hpp"

namespace fivecuts {
namespace {

namespace fs = std::filesystem;

std::string last_error() { return std::generic_category().message(errno); }

/// Why `path` cannot be written, "" if it can. `part` is the file that will be written first.
std::string obstacle(const fs::path& path, const fs::path& part) {
  std::error_code ignored;
  if (path.empty()) return "the name is empty";
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status) || !path.has_filename()) return "it is a folder";
  const fs::path folder = path.parent_path();
  if (!folder.empty() && !fs::is_directory(folder, ignored))
    return fmt::format("the folder '{}' does not exist", folder.string());
  // A rename would put a plain file in the place of a device or a pipe.
  if (fs::exists(status) && !fs::is_regular_file(status)) return "it is no plain file";
  if (fs::exists(status) && access(path.c_str(), W_OK) != 0) return last_error();
  errno = 0;
  if (!std::ofstream(part)) return last_error();
  fs::remove(part, ignored);
  return "";
}

}  // namespace

bool same_file(const fs::path& a, const fs::path& b) {
  // Absolute first: of a relative path of which nothing exists weakly_canonical keeps the spelling.
  const auto place_of = [](const fs::path& path) {
    std::error_code error;
    const fs::path full = fs::absolute(path, error);
    const fs::path canonical = fs::weakly_canonical(error ? path : full, error);
    return error ? full : canonical;
  };
  return place_of(a) == place_of(b);
}

OutputFile::OutputFile(fs::path path, const std::string& what, const std::string& example)
    : path_(std::move(path)) {
  std::error_code ignored;
  // A link stays, and what it points to is replaced.
  if (fs::is_symlink(path_, ignored) && fs::exists(path_, ignored))
    path_ = fs::canonical(path_, ignored);
  part_ = path_;
  part_ += fmt::format(".{}.part", getpid());
  const std::string why = obstacle(path_, part_);
  if (!why.empty())
    throw UsageError(fmt::format("cannot write the {} to '{}': {}; give another path, as in {}",
                                 what, path_.string(), why, example));
}

void OutputFile::write(const std::string& content) const {
  errno = 0;
  std::ofstream out(part_, std::ios::binary);
  out << content;
  out.close();  // a full disk may say so only now
  std::error_code error;
  std::string why = out ? "" : last_error();
  if (why.empty()) {
    fs::rename(part_, path_, error);
    if (!error) return;
    why = error.message();
  }
  fs::remove(part_, error);
  fail(fmt::format("cannot write {}: {}", path_.string(), why));
}

}  // namespace fivecuts
