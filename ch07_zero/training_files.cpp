#include "ch07_zero/training_files.hpp"

#include <algorithm>

#include "ch07_zero/ranks_and_files.hpp"
#include "common/comm/output.hpp"
#include "common/support/units.hpp"

namespace fivecuts::zero_redundancy {
namespace {

namespace fs = std::filesystem;

/// "11.96 KB a rank": the most of all ranks.
std::string a_rank(const Communicator& comm, std::int64_t bytes) {
  const auto all = comm.gather(bytes);
  return show_bytes(static_cast<double>(*std::max_element(all.begin(), all.end()))) + " a rank";
}

/// A SafeFile is written beside its place, and takes what lies there for a crash's.
void refuse_part_of(const fs::path& file) {
  const fs::path part = file.string() + ".part";
  if (!fs::exists(fs::symlink_status(part))) return;
  throw UsageError(fmt::format(
      "'{}' is where the weights would be written first; remove it, or give --export another file",
      part.string()));
}

/// Whether what is written to `file` would land in `folder`, or in its place. Behind links, and
/// neither need exist yet.
bool lies_in(const fs::path& file, const fs::path& folder) {
  std::error_code unreachable;  // nor can it be written then
  fs::path at = fs::weakly_canonical(fs::absolute(file, unreachable), unreachable);
  const fs::path without_slash = (folder / "").parent_path();
  for (; !unreachable; at = at.parent_path()) {
    if (same_file(at, without_slash)) return true;
    if (at == at.parent_path()) break;
  }
  return false;
}

}  // namespace

void refuse_clashes(const Context& context, const TrainingFiles& files) {
  struct Output {
    const char *flag, *example;
    const std::optional<fs::path>& file;
  };
  const Output outputs[] = {{"--figure", "step.svg", files.figure},
                            {"--plot", "state.svg", files.plot},
                            {"--export", "model.safetensors", files.weights}};
  by_rank_0(context.world, [&] {
    for (const Output& one : outputs) {
      if (!one.file || one.file->empty()) continue;
      for (const auto& folder : {files.save, files.resume}) {
        if (!folder || folder->empty() || !lies_in(*one.file, *folder)) continue;
        throw UsageError(fmt::format(
            "{0} would write into the checkpoint '{1}'; give a file elsewhere, as in {0} {2}",
            one.flag, folder->string(), one.example));
      }
      for (const Output* other = outputs; other != &one; ++other) {
        if (!other->file || !same_file(*one.file, *other->file)) continue;
        throw UsageError(fmt::format(
            "{0} and {1} would both be written to '{2}'; give two files, as in {0} {3} {1} {4}",
            other->flag, one.flag, one.file->string(), other->example, one.example));
      }
    }
    return std::string();
  });
}

Recipe recipe_of(const Setting& setting) {
  const data_parallel::TrainingOptions& t = setting.training;
  return {.model = setting.model(),
          .precision = t.precision,
          .seed = t.seed,
          .batch = t.batch,
          .learning_rate = t.learning_rate,
          .clip = setting.clip};
}

FolderLock check_files(const Context& context, const Digits& digits, const Setting& setting,
                       TrainingFiles& files) {
  const auto exported =
      output_file(context, files.weights, "weights", "--export model.safetensors");
  if (exported) files.weights = exported->path();  // behind links; rank 0 writes it
  by_rank_0(context.world, [&] {
    if (files.weights) refuse_part_of(*files.weights);
    return std::string();
  });
  FolderLock lock;
  if (files.save) {
    check_save_folder(context.world, *files.save, files.resume ? &*files.resume : nullptr);
    by_rank_0(context.world, [&] {
      lock = FolderLock(*files.save);
      return std::string();
    });
  }
  if (!files.resume) return lock;
  const std::int64_t steps = read_manifest(context.world, recipe_of(setting), *files.resume).steps;
  const data_parallel::TrainingOptions& t = setting.training;
  const std::int64_t an_epoch = (digits.train.count() + t.batch - 1) / t.batch;
  if (steps > an_epoch * t.epochs) {
    throw UsageError(fmt::format(
        "'{}' has {} steps behind it, and --epochs {} makes {}; give --epochs {} or more",
        files.resume->string(), steps, t.epochs, an_epoch * t.epochs,
        (steps + an_epoch - 1) / an_epoch));
  }
  return lock;
}

std::int64_t resume_and_say(Context& context, Communicator& dp, const Setting& setting,
                            const fs::path& folder, Trainer& trainer) {
  const Resumed from = resume(trainer, dp, recipe_of(setting), folder);
  const std::string bytes = a_rank(dp, from.bytes);
  const std::uint64_t state = hash(trainer, dp);
  context.say("resumed {} at step {}, saved by {} rank(s) at stage {}: {} read, state {:016x}\n",
              folder.string(), from.steps, from.ranks, from.stage, bytes, state);
  return from.steps;
}

void save_and_say(Context& context, const Communicator& dp, const Setting& setting,
                  const fs::path& folder, const Trainer& trainer, std::int64_t steps) {
  const std::int64_t mine = save(trainer, dp, recipe_of(setting), steps, folder);
  const std::string bytes = a_rank(dp, mine);
  const std::uint64_t state = hash(trainer, dp);
  context.say("  saved {} at step {}: {} written, state {:016x}\n", folder.string(), steps, bytes,
              state);
}

void export_and_say(Context& context, Communicator& dp, const fs::path& file,
                    const Trainer& trainer) {
  const std::int64_t bytes = export_weights(trainer, dp, file);
  context.say("exported {}: {} layers in f32, {}\n", file.string(), trainer.layers().size(),
              show_bytes(static_cast<double>(bytes)));
}

}  // namespace fivecuts::zero_redundancy
