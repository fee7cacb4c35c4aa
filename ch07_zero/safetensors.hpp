#pragma once
// The safetensors format (github.com/huggingface/safetensors), as PyTorch's and NumPy's tools read
// it:
//
//    bytes 0 to 7      n, the length of the header, little-endian
//    n bytes           JSON: {"NAME": {"dtype": "F32", "shape": [64, 10], "data_offsets": [0,
//                      2560]}, ...} and texts under "__metadata__"; spaces up to a multiple of 8
//    the rest          the tensors' numbers, row-major and little-endian, one right after the other
//
// Everything here is f32, in the order in which it stands in the file. An offset counts from the
// end of the header, so the header alone says where in the file a tensor, or a range of it, lies.
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace fivecuts::zero_redundancy {

struct TensorInfo {
  std::string name;
  std::vector<std::int64_t> shape;  ///< an empty dimension is allowed; then it has no bytes

  std::int64_t bytes() const;
};

/// The first bytes of the file, up to the first number. The same text for the same arguments: who
/// knows what a file holds can check its header without reading it as JSON.
std::string safetensors_header(std::span<const TensorInfo> tensors,
                               const std::map<std::string, std::string>& metadata);

}  // namespace fivecuts::zero_redundancy
