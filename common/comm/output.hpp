#pragma once
// Files that a run of several ranks writes.
#include <optional>

#include "common/comm/context.hpp"
#include "common/observe/output_file.hpp"

namespace fivecuts {

/// Collective. The file `path` for rank 0, which writes it, and nothing for the others; nothing at
/// all if there is no `path`. A path that cannot be written is refused on every rank alike, with a
/// UsageError; others may be on other hosts, so what rank 0 finds counts for all. `what` and
/// `example`: see OutputFile.
inline std::optional<OutputFile> output_file(const Context& context,
                                             const std::optional<std::filesystem::path>& path,
                                             const std::string& what, const std::string& example) {
  std::optional<OutputFile> file;
  std::string refusal;
  if (context.rank() == 0 && path) {
    try {
      file.emplace(*path, what, example);
    } catch (const UsageError& error) {
      refusal = error.what();
    }
  }
  refusal = context.world.gather_text(refusal).front();
  if (!refusal.empty()) throw UsageError(refusal);
  return file;
}

}  // namespace fivecuts
