#include "ch07_zero/save_folder.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include "ch07_zero/safe_file.hpp"
#include "common/support/error.hpp"

namespace fivecuts::zero_redundancy {

namespace fs = std::filesystem;

namespace {

/// The number of "save-12"; 0 for another name.
int save_number(const std::string& name) {
  constexpr std::string_view prefix = "save-";
  int number = 0;
  const char* end = name.data() + name.size();
  if (!name.starts_with(prefix)) return 0;
  const auto [at, error] = std::from_chars(name.data() + prefix.size(), end, number);
  return error == std::errc() && at == end ? number : 0;
}

fs::path parent_of(const fs::path& folder) {
  return fs::absolute(folder / "..").lexically_normal();
}

}  // namespace

void refuse_other_things(const fs::path& folder) {
  if (folder.empty()) throw UsageError("--save takes a folder, as in --save state.tmp");
  if (!fs::exists(fs::symlink_status(folder))) {
    const fs::path parent = parent_of(folder);
    if (fs::is_directory(parent)) return;
    throw UsageError(fmt::format("cannot save to '{}': there is no folder '{}'", folder.string(),
                                 parent.string()));
  }
  if (!fs::is_directory(folder)) {
    throw UsageError(
        fmt::format("cannot save to '{}': it is no folder; give another name, as in "
                    "--save state.tmp",
                    folder.string()));
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(manifest_name) || save_number(name) > 0) continue;
    throw UsageError(
        fmt::format("cannot save to '{}': it holds something else, '{}'; give a folder "
                    "for checkpoints alone, as in --save state.tmp",
                    folder.string(), name));
  }
}

std::string next_save(const fs::path& folder) {
  refuse_other_things(folder);
  if (fs::create_directory(folder)) sync_folder(parent_of(folder));
  int last = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    last = std::max(last, save_number(entry.path().filename().string()));
  }
  const std::string name = fmt::format("save-{}", last + 1);
  fs::create_directory(folder / name);
  return name;
}

void remove_other_saves(const fs::path& folder, const std::string& kept) {
  std::error_code ignored;
  std::vector<fs::path> others;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (save_number(name) > 0 && name != kept) others.push_back(entry.path());
  }
  for (const fs::path& other : others) {
    std::vector<fs::path> shards;
    for (const fs::directory_entry& entry : fs::directory_iterator(other, ignored)) {
      if (entry.path().filename().string().starts_with("rank-")) shards.push_back(entry.path());
    }
    for (const fs::path& shard : shards) fs::remove(shard, ignored);
    fs::remove(other, ignored);  // stays if there is anything else in it
  }
}

}  // namespace fivecuts::zero_redundancy
