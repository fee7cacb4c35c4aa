// The format, by a reader of its own, and files that are there whole or not at all.
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "ch07_zero/checkpoint_cases.hpp"
#include "ch07_zero/safe_file.hpp"
#include "ch07_zero/safetensors.hpp"

namespace fivecuts::zero_redundancy {
namespace {

// As its description says: eight bytes, that many of JSON, and no hole between the tensors.
ONE_RANK_TEST(Safetensors, HeaderIsTheFormats) {
  for (const char* note : {"", "x", "xx", "xxx", "xxxx", "xxxxx", "xxxxxx", "xxxxxxx"}) {
    const std::vector<TensorInfo> tensors = {
        {"b", {3, 5}}, {"a", {0}}, {"c", {7}}, {"empty", {0, 4}}, {"d", {1}}};
    const std::string header = safetensors_header(tensors, {{"note", note}});
    std::uint64_t length = 0;
    std::memcpy(&length, header.data(), sizeof length);
    EXPECT_EQ(length % 8, 0u);
    EXPECT_EQ(header.size(), 8 + length);
    const auto json = nlohmann::json::parse(header.substr(8));
    EXPECT_EQ(json.size(), 6u);
    EXPECT_EQ(json["__metadata__"], (nlohmann::json{{"note", note}}));
    std::int64_t end = 0;
    for (const TensorInfo& tensor : tensors) {
      const auto& info = json[tensor.name];
      EXPECT_EQ(info["dtype"], "F32");
      EXPECT_EQ(info["shape"], nlohmann::json(tensor.shape));
      EXPECT_EQ(info["data_offsets"][0], end);
      end += tensor.bytes();
      EXPECT_EQ(info["data_offsets"][1], end);
    }
    EXPECT_EQ(end, 4 * (15 + 7 + 1));
  }
}

std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

ONE_RANK_TEST(SafeFile, IsThereWholeOrNotAtAll) {
  const SharedFolder folder;
  const fs::path file = folder / "file", part = folder / "file.part";
  put_text(part, "what a crash has left, longer than what is written");
  {
    SafeFile out(file);
    out.write(bytes("first"));
    EXPECT_FALSE(fs::exists(file));
    EXPECT_EQ(text_of(part), "first");
    out.commit();
    EXPECT_EQ(out.bytes(), 5);
  }
  EXPECT_EQ(text_of(file), "first");
  EXPECT_FALSE(fs::exists(part));
  {
    SafeFile out(file);
    out.write(bytes("second"));
    EXPECT_EQ(text_of(file), "first");
  }
  EXPECT_EQ(text_of(file), "first");
  EXPECT_FALSE(fs::exists(part));
  EXPECT_THROW(SafeFile(folder / "no/file"), FileError);
  ASSERT_EQ(mkfifo(part.c_str(), 0600), 0);
  EXPECT_THROW(SafeFile{file}, FileError) << "nobody reads at the other end";
  fs::remove(part);
  fs::create_directory(folder / "taken");
  SafeFile out(folder / "taken");
  EXPECT_THROW(out.commit(), FileError);
  EXPECT_FALSE(fs::exists(folder / "taken.part"));
}

ONE_RANK_TEST(SafeFile, AFullDiskIsAnError) {
  if (!fs::exists("/dev/full")) return;
  const SharedFolder folder;
  fs::create_symlink("/dev/full", folder / "file.part");
  std::string said;
  try {
    SafeFile(folder / "file").write(bytes("more than there is room for"));
  } catch (const FileError& error) {
    said = error.what();
  }
  EXPECT_TRUE(has(said, "/file': No space left on device")) << said;
  EXPECT_FALSE(fs::exists(fs::symlink_status(folder / "file.part")));
}

ONE_RANK_TEST(RangeReader, CountsWhatItReads) {
  const SharedFolder folder;
  put_text(folder / "file", "0123456789");
  RangeReader in(folder / "file");
  EXPECT_EQ(in.size(), 10);
  std::string text(4, ' ');
  in.read(3, std::as_writable_bytes(std::span(text)));
  EXPECT_EQ(text, "3456");
  EXPECT_EQ(in.bytes(), 4);
  EXPECT_THROW(in.read(8, std::as_writable_bytes(std::span(text))), FileError);
  EXPECT_THROW(RangeReader(folder / "none"), FileError);
}

// Any changed bit changes it; parts of it add up, and it depends on where numbers stand.
ONE_RANK_TEST(Checksum, AddsUpAndSeesEveryBit) {
  std::vector<float> values;
  for (int i = 0; i < 40; ++i) values.push_back(static_cast<float>(i) / 7 - 2);
  const std::span<float> all(values);
  const std::uint64_t want = checksum(100, all);
  EXPECT_EQ(checksum(100, all.first(13)) + checksum(113, all.subspan(13)), want);
  EXPECT_NE(checksum(101, all), want);
  for (std::size_t byte = 0; byte < 4 * values.size(); ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      auto& at = reinterpret_cast<unsigned char*>(values.data())[byte];
      at = static_cast<unsigned char>(at ^ 1 << bit);
      EXPECT_NE(checksum(100, all), want);
      at = static_cast<unsigned char>(at ^ 1 << bit);
    }
  }
  std::swap(values[3], values[4]);
  EXPECT_NE(checksum(100, all), want);
}

}  // namespace
}  // namespace fivecuts::zero_redundancy
