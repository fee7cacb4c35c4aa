#pragma once
// Files that are there whole or not at all, and files of which only some bytes are read.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <stdexcept>

namespace fivecuts::zero_redundancy {

/// What the system says of a file, in one sentence that names it. Of this rank alone.
struct FileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A file that nobody ever sees a half of. What is written goes to FILE.part; commit() brings that
/// to the disk, and only then gives it its name. A rename takes the place of the old file at one
/// moment, so whoever looks, even after a crash, finds the old one or the new one.
class SafeFile {
 public:
  /// Creates FILE.part, in the place of one that a crash has left. Throws FileError, as all here.
  explicit SafeFile(std::filesystem::path file);
  SafeFile(const SafeFile&) = delete;
  ~SafeFile();  ///< without commit(): FILE.part is gone, and FILE is what it was

  void write(std::span<const std::byte> bytes);
  void commit();
  std::int64_t bytes() const { return bytes_; }  ///< written so far

 private:
  std::filesystem::path file_, part_;
  int handle_ = -1;
  std::int64_t bytes_ = 0;
};

/// Brings the names of the files in `folder` to the disk; their content is there already.
void sync_folder(const std::filesystem::path& folder);

/// A file that is read in ranges, and counts them.
class RangeReader {
 public:
  /// Throws FileError unless it is a plain file: a pipe would let its reader wait for ever.
  explicit RangeReader(std::filesystem::path file);
  RangeReader(const RangeReader&) = delete;
  ~RangeReader();

  std::int64_t size() const { return size_; }              ///< of the file, when it was opened
  void read(std::int64_t first, std::span<std::byte> to);  ///< all of it, or FileError
  std::int64_t bytes() const { return bytes_; }            ///< read so far

 private:
  std::filesystem::path file_;
  int handle_ = -1;
  std::int64_t size_ = 0, bytes_ = 0;
};

}  // namespace fivecuts::zero_redundancy
