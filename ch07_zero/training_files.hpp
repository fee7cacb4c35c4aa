#pragma once
// The files of a run: what --save, --resume and --export do, and the lines that say so.
#include <optional>

#include "ch07_zero/checkpoint.hpp"
#include "ch07_zero/save_folder.hpp"
#include "ch07_zero/training.hpp"
#include "common/observe/output_file.hpp"

namespace fivecuts::zero_redundancy {

struct TrainingFiles {
  std::optional<std::filesystem::path> save{}, resume{};  ///< folders of a checkpoint
  std::optional<std::filesystem::path> weights{};         ///< what --export writes
  std::optional<std::filesystem::path> figure{}, plot{};  ///< pictures
};

Recipe recipe_of(const Setting& setting);

/// Collective, as all here. Throws UsageError, on every rank alike, if what one flag writes would
/// take the place of what another does, or of a part of a checkpoint.
void refuse_clashes(const Context& context, const TrainingFiles& files);

/// Throws UsageError, on every rank alike, if a file or folder cannot be written, if there is
/// nothing to go on from, or if that has more steps than the run. Gives rank 0 the folder to save to
/// for as long as what it returns lives.
[[nodiscard]] FolderLock check_files(const Context& context, const Digits& digits,
                                     const Setting& setting, TrainingFiles& files);

/// Returns the steps that `trainer` has behind it then.
std::int64_t resume_and_say(Context& context, Communicator& dp, const Setting& setting,
                            const std::filesystem::path& folder, Trainer& trainer);
void save_and_say(Context& context, const Communicator& dp, const Setting& setting,
                  const std::filesystem::path& folder, const Trainer& trainer, std::int64_t steps);
void export_and_say(Context& context, Communicator& dp, const std::filesystem::path& file,
                    const Trainer& trainer);

}  // namespace fivecuts::zero_redundancy
