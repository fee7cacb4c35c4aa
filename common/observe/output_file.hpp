#pragma once
// A file that a run writes at its end, refused at its beginning if it cannot be written.
#include <filesystem>
#include <string>

namespace fivecuts {

/// Whether two paths, however they are spelt and through whatever links, lead to one file, which need not exist
/// yet. For flags that name two: the second would take the place of the first.
bool same_file(const std::filesystem::path& a, const std::filesystem::path& b);

class OutputFile {
 public:
  /// Throws UsageError, one sentence, if the file cannot be written: no such folder, a folder, no
  /// permission. Leaves everything as it is; an existing file keeps its content until write().
  /// `what` is in the file, and `example` is a use that works; both are for that sentence.
  explicit OutputFile(std::filesystem::path path, const std::string& what = "figure",
                      const std::string& example = "--figure timeline.svg");

  /// Writes a file beside it and renames that, so nobody ever sees a half of it. Throws Failure if
  /// that does not succeed (a full disk, a folder that is gone) and then leaves everything as it
  /// was.
  void write(const std::string& content) const;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_, part_;
};

}  // namespace fivecuts
