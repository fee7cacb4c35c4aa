#include "ch07_zero/save_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <string_view>
#include <thread>
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

bool is_shard(const std::string& name) {
  std::string_view rest = name;
  if (rest.ends_with(".part")) rest.remove_suffix(5);
  constexpr std::string_view before = "rank-", after = ".safetensors";
  if (!rest.starts_with(before) || !rest.ends_with(after)) return false;
  rest = rest.substr(before.size(), rest.size() - before.size() - after.size());
  return !rest.empty() && std::ranges::all_of(rest, [](char c) { return c >= '0' && c <= '9'; });
}

/// Whether it is a save's folder, whole or not, and there is nothing else in it.
bool is_save(const fs::directory_entry& entry) {
  if (save_number(entry.path().filename().string()) == 0) return false;
  if (entry.symlink_status().type() != fs::file_type::directory) return false;
  return std::ranges::all_of(fs::directory_iterator(entry), [](const fs::directory_entry& file) {
    return is_shard(file.path().filename().string());
  });
}

bool is_manifest(const std::string& name) {
  return name == manifest_name || name == std::string(manifest_name) + ".part";
}

/// look() at a folder that a run is to save to. What the system says of it, or of a file in it, is
/// wrong use before the run has begun.
template <class F>
void or_refuse(const fs::path& folder, const F& look) {
  const auto refuse = [&](const std::string& why) {
    throw UsageError(
        fmt::format("cannot save to '{}': {}; give another folder, as in --save state.tmp",
                    folder.string(), why));
  };
  try {
    look();
  } catch (const fs::filesystem_error& error) {
    refuse(error.code().message());
  } catch (const FileError& error) {
    refuse(error.what());
  }
}

fs::path parent_of(const fs::path& folder) {
  return fs::absolute(folder / "..").lexically_normal();
}

void refuse_what_is_not_ours(const fs::path& folder) {
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
    if (is_manifest(name) || is_save(entry)) continue;
    throw UsageError(
        fmt::format("cannot save to '{}': it holds something else, '{}'; give a folder "
                    "for checkpoints alone, as in --save state.tmp",
                    folder.string(), name));
  }
}

}  // namespace

void refuse_other_things(const fs::path& folder) {
  or_refuse(folder, [&] { refuse_what_is_not_ours(folder); });
}

std::string next_save(const fs::path& folder) {
  if (fs::create_directory(folder)) sync_folder(parent_of(folder));
  int last = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    last = std::max(last, save_number(entry.path().filename().string()));
  }
  const std::string name = fmt::format("save-{}", last + 1);
  if (!fs::create_directory(folder / name)) {
    throw FileError(fmt::format("another run saves to '{}' too", folder.string()));
  }
  return name;
}

void remove_other_saves(const fs::path& folder, const std::string& kept) {
  std::error_code ignored;
  std::vector<fs::path> others;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const bool other = entry.path().filename() != kept;
    if (other && save_number(entry.path().filename().string()) > 0) others.push_back(entry.path());
  }
  for (const fs::path& other : others) {
    std::vector<fs::path> shards;
    for (const fs::directory_entry& entry : fs::directory_iterator(other, ignored)) {
      if (is_shard(entry.path().filename().string())) shards.push_back(entry.path());
    }
    for (const fs::path& shard : shards) fs::remove(shard, ignored);
    // Stays if there is anything else in it, or if it is no folder.
    if (fs::is_directory(fs::symlink_status(other, ignored))) fs::remove(other, ignored);
  }
}

FolderLock::FolderLock(const fs::path& folder, int tenths_of_a_second) : FolderLock() {
  or_refuse(folder, [&] {
    if (fs::create_directory(folder)) sync_folder(parent_of(folder));
  });
  handle_ = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  bool alone = true;
  for (int tries = 0; handle_ >= 0 && flock(handle_, LOCK_EX | LOCK_NB) != 0; ++tries) {
    alone = errno == EWOULDBLOCK;
    if (!alone) break;  // no locks on this file system
    if (tries == tenths_of_a_second) {
      throw UsageError(
          fmt::format("another run saves to '{}'; wait for its end, or give another folder, as in "
                      "--save other.tmp",
                      folder.string()));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  if (!alone) return;  // a trial could cut short what another run writes
  or_refuse(folder, [&] { SafeFile(folder / manifest_name); });  // can be made, and is gone again
}

FolderLock::~FolderLock() {
  if (handle_ >= 0) close(handle_);
}

}  // namespace fivecuts::zero_redundancy
