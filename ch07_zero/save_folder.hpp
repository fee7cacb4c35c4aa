#pragma once
// The folder of a checkpoint: manifest.json, and one folder save-N of shards, for a moment two.
#include <filesystem>
#include <string>

namespace fivecuts::zero_redundancy {

inline constexpr const char* manifest_name = "manifest.json";

/// Throws UsageError if `folder` holds anything but checkpoints, is no folder, or cannot come to
/// be: what is not ours is never removed.
void refuse_other_things(const std::filesystem::path& folder);

/// Makes the folder of the next save, and returns its name.
std::string next_save(const std::filesystem::path& folder);

/// Removes all saves but `kept`: the one before, and what crashes have left. Where that does not
/// succeed, it costs space only.
void remove_other_saves(const std::filesystem::path& folder, const std::string& kept);

}  // namespace fivecuts::zero_redundancy
