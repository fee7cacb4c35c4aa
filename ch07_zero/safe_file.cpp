#include "ch07_zero/safe_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace fivecuts::zero_redundancy {
namespace {

namespace fs = std::filesystem;

// The system takes at most 2 GiB at a time.
constexpr std::size_t at_a_time = std::size_t{1} << 30;

[[noreturn]] void cannot(const char* what, const fs::path& file) {
  const std::string why = std::generic_category().message(errno);
  throw FileError(fmt::format("cannot {} '{}': {}", what, file.string(), why));
}

fs::path folder_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

}  // namespace

SafeFile::SafeFile(fs::path file) : file_(std::move(file)), part_(file_) {
  part_ += ".part";
  // O_NONBLOCK: a pipe in its place is refused, and not waited for.
  handle_ = open(part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666);
  if (handle_ < 0) cannot("write", file_);
}

SafeFile::~SafeFile() {
  if (handle_ < 0) return;
  close(handle_);
  unlink(part_.c_str());
}

void SafeFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(handle_, bytes.data(), std::min(bytes.size(), at_a_time));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) cannot("write", file_);
    bytes = bytes.subspan(static_cast<std::size_t>(done));
    bytes_ += done;
  }
}

void SafeFile::commit() {
  if (fsync(handle_) != 0) cannot("write", file_);
  const int closed = close(handle_);
  handle_ = -1;
  if (closed != 0 || rename(part_.c_str(), file_.c_str()) != 0) {
    const int why = errno;
    unlink(part_.c_str());
    errno = why;
    cannot("write", file_);
  }
  sync_folder(folder_of(file_));
}

void sync_folder(const fs::path& folder) {
  const int handle = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (handle < 0) cannot("open the folder", folder);
  // EINVAL: a file system that has nothing to bring to a disk.
  const bool done = fsync(handle) == 0 || errno == EINVAL;
  const int why = errno;
  close(handle);
  errno = why;
  if (!done) cannot("write the folder", folder);
}

RangeReader::RangeReader(fs::path file) : file_(std::move(file)) {
  handle_ = open(file_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (handle_ < 0) cannot("read", file_);
  struct stat status {};
  const bool known = fstat(handle_, &status) == 0;
  if (known && S_ISREG(status.st_mode)) {
    size_ = status.st_size;
    return;
  }
  const int why = errno;
  close(handle_);
  errno = why;
  if (!known) cannot("read", file_);
  throw FileError(fmt::format("cannot read '{}': it is no plain file", file_.string()));
}

RangeReader::~RangeReader() { close(handle_); }

void RangeReader::read(std::int64_t first, std::span<std::byte> to) {
  while (!to.empty()) {
    const ssize_t done = pread(handle_, to.data(), std::min(to.size(), at_a_time), first);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) cannot("read", file_);
    if (done == 0) throw FileError(fmt::format("'{}' ends too early", file_.string()));
    to = to.subspan(static_cast<std::size_t>(done));
    first += done;
    bytes_ += done;
  }
}

}  // namespace fivecuts::zero_redundancy
