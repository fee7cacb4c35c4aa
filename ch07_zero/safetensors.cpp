#include "ch07_zero/safetensors.hpp"

#include <bit>
#include <nlohmann/json.hpp>

namespace fivecuts::zero_redundancy {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie");

std::int64_t TensorInfo::bytes() const {
  std::int64_t count = sizeof(float);
  for (const std::int64_t side : shape) count *= side;
  return count;
}

std::string safetensors_header(std::span<const TensorInfo> tensors,
                               const std::map<std::string, std::string>& metadata) {
  nlohmann::json header;
  header["__metadata__"] = metadata;
  std::int64_t offset = 0;
  for (const TensorInfo& tensor : tensors) {
    const std::int64_t end = offset + tensor.bytes();
    header[tensor.name] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string length(8, '\0');
  for (std::size_t i = 0; i < length.size(); ++i) {
    length[i] = static_cast<char>(text.size() >> (8 * i) & 0xFF);
  }
  return length + text;
}

}  // namespace fivecuts::zero_redundancy
