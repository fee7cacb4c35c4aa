#pragma once
// The folder of a checkpoint: manifest.json, and one folder save-N of shards, for a moment two.
#include <filesystem>
#include <string>
#include <utility>

namespace fivecuts::zero_redundancy {

inline constexpr const char* manifest_name = "manifest.json";

/// Throws UsageError if `folder` holds anything but checkpoints, is no folder, or cannot come to
/// be: what is not ours is never removed.
void refuse_other_things(const std::filesystem::path& folder);

/// A run that saves to a folder has it to itself: two would remove each other's saves. The system
/// gives it back when the process ends, however it ends.
class FolderLock {
 public:
  FolderLock() = default;  ///< of no folder
  /// Creates the folder. Throws UsageError if no file can be made there. If another run has it,
  /// waits some seconds, as that one may be ending, and then throws UsageError. File systems that
  /// know no locks are taken at their word, in both.
  explicit FolderLock(const std::filesystem::path& folder, int tenths_of_a_second = 50);
  FolderLock(FolderLock&& other) noexcept : handle_(std::exchange(other.handle_, -1)) {}
  FolderLock& operator=(FolderLock&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~FolderLock();

 private:
  int handle_ = -1;
};

/// Makes the folder of the next save, and returns its name.
std::string next_save(const std::filesystem::path& folder);

/// Removes all saves but `kept`: the one before, and what crashes have left. Where that does not
/// succeed, it costs space only.
void remove_other_saves(const std::filesystem::path& folder, const std::string& kept);

}  // namespace fivecuts::zero_redundancy
