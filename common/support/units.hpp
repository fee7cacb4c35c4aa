#pragma once
// Bytes as people write and read them. GB = 1e9 bytes, GiB = 2^30, as everywhere in this project.
#include <cstdint>
#include <string>
#include <string_view>

namespace fivecuts {

/// "80GB", "1.5 GiB", "4096" -> bytes. Throws UsageError on anything else, on zero and below.
std::int64_t parse_bytes(std::string_view text);

/// 14000000000 -> "14 GB", 1536 -> "1.536 KB"; at most four digits.
std::string show_bytes(double bytes);

}  // namespace fivecuts
