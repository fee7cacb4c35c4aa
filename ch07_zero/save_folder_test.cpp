// The folder of a checkpoint: what else may lie in it, and who may save to it.
#include "ch07_zero/checkpoint_cases.hpp"
#include "ch07_zero/safe_file.hpp"
#include "ch07_zero/training_files.hpp"

namespace fivecuts::zero_redundancy {
namespace {

// What is not ours is refused, and stays.
RANK_TEST(Foreign, AFolderWithOtherThingsIsNotTouched) {
  Communicator comm = dp();
  const SharedFolder folder;
  const Recipe run = recipe(uneven());
  const Trainer trainer(test_context().device, comm, run.model, 3, {.stage = 3});
  one_does([&] {
    fs::create_directories(folder / "thesis/save-1");
    fs::create_directories(folder / "photos/save-1");
    put_text(folder / "photos/save-1/rank-list.txt", "of mountains");
    fs::create_directories(folder / "notes");
    put_text(folder / "notes/save-1", "a file");
    put_text(folder / "thesis/chapter.tex", "years of work");
    put_text(folder / "file", "a file");
  });
  EXPECT_TRUE(has(refused_folder(folder / "thesis"), "it holds something else, 'chapter.tex'"));
  EXPECT_TRUE(has(refused_folder(folder / "photos"), "it holds something else, 'save-1'"));
  EXPECT_TRUE(has(refused_folder(folder / "notes"), "it holds something else, 'save-1'"));
  EXPECT_TRUE(has(refused_folder(folder / "file"), "it is no folder"));
  EXPECT_TRUE(has(refused_folder(folder / "no/state"), "there is no folder '"));
  EXPECT_TRUE(has(refused_folder(""), "--save takes a folder"));
  EXPECT_EQ(refused_folder(folder / "state"), "");
  EXPECT_EQ(text_of(folder / "thesis/chapter.tex"), "years of work");
  comm.barrier();

  one_does(
      [&] { fs::create_directories(folder / "state/save-7"); });  // a crash before a first save
  EXPECT_EQ(refused_folder(folder / "state"), "");
  one_does([&] { put_text(folder / "state/save-7/notes.txt", "not ours"); });
  save(trainer, comm, run, 0, folder / "state");
  EXPECT_EQ(text_of(folder / "state/save-7/notes.txt"), "not ours");
  EXPECT_TRUE(has(refused_folder(folder / "state"), "it holds something else, 'save-7'"));
  one_does([&] { fs::remove_all(folder / "state/save-7"); });
  EXPECT_TRUE(has(refused_folder(folder / "state"), "holds the checkpoint of a run already"));
  const fs::path same = folder / "state/../state/";
  EXPECT_EQ(refused_folder(folder / "state", &same), "");
}

// Also where nobody may write who is root; and what stands in the way of a file stays there.
ONE_RANK_TEST(Folder, ThatTakesNoFileIsRefused) {
  const SharedFolder folder;
  fs::create_directories(folder / "full/manifest.json.part");
  put_text(folder / "file", "a file");
  const auto refusal = [](const fs::path& path) -> std::string {
    try {
      refuse_other_things(path);
      const FolderLock taken(path, 0);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  for (const fs::path& path : {folder / "full", folder / "file", folder / "file/state",
                               folder / std::string(300, 'x'), fs::path("/proc/state")}) {
    if (path == "/proc/state" && !fs::exists("/proc/self")) continue;
    const std::string said = refusal(path);
    EXPECT_TRUE(said.starts_with("cannot save to '" + path.string())) << path << said;
  }
  EXPECT_TRUE(has(refusal(folder / "full"), "manifest.json': Is a directory; give another folder"));
  EXPECT_TRUE(fs::is_directory(folder / "full/manifest.json.part"));
  fs::remove(folder / "full/manifest.json.part");
  EXPECT_EQ(refusal(folder / "full"), "");
  EXPECT_TRUE(fs::is_empty(folder / "full")) << "nothing is left of the trial";
}

// However the paths are spelt, and through whatever links: what one flag writes is not written over
// by another, and no checkpoint by any.
RANK_TEST(Outputs, TakeNoOthersPlace) {
  const SharedFolder folder;
  one_does([&] {
    fs::create_directories(folder / "state/save-1");
    put_text(folder / "state/manifest.json", "whole");
    fs::create_directory_symlink(folder / "state", folder / "link");
    fs::create_symlink(folder / "state/manifest.json", folder / "m.json");
    fs::create_directories(folder / "pictures");
    fs::create_directory_symlink(folder / "pictures", folder / "also");
  });
  const auto refusal = [&](const TrainingFiles& files) -> std::string {
    try {
      refuse_clashes(test_context(), files);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  using Path = std::optional<fs::path>;
  const auto with = [&](int output, const Path& path, TrainingFiles files) {
    (output == 0 ? files.figure : output == 1 ? files.plot : files.weights) = path;
    return files;
  };
  for (int output = 0; output < 3; ++output) {
    for (const char* inside :
         {"state", "state/manifest.json", "state/save-1/rank-0.safetensors", "state/new",
          "state/../state/new", "link", "link/new", "link/save-1/new", "m.json", "no/../state/x"}) {
      for (const char* spelling : {"state", "state/", "link", "link/", "pictures/../state"}) {
        const Path checkpoint = folder / spelling;
        EXPECT_TRUE(has(refusal(with(output, folder / inside, {.save = checkpoint})),
                        "would write into the checkpoint"))
            << inside << " in " << spelling;
        EXPECT_NE(refusal(with(output, folder / inside, {.resume = checkpoint})), "");
      }
    }
    for (const char* slash : {"", "/"}) {  // a folder that is not there yet
      const Path absent = folder / (std::string("absent") + slash);
      EXPECT_NE(refusal(with(output, folder / "absent", {.save = absent})), "");
    }
    for (const char* outside : {"statement", "pictures/state", "state.svg", "link.svg", "no/x"}) {
      EXPECT_EQ(refusal(with(output, folder / outside, {.save = folder / "state"})), "") << outside;
    }
    for (const int other : {(output + 1) % 3, (output + 2) % 3}) {
      for (const char* same : {"pictures/a", "pictures/./a", "also/a", "pictures/no/../a"}) {
        const TrainingFiles first = with(output, folder / "pictures/a", {});
        EXPECT_TRUE(has(refusal(with(other, folder / same, first)), "would both be written to '"));
        EXPECT_EQ(refusal(with(other, folder / "pictures/b", first)), "");
      }
    }
  }
}

// Two runs would remove each other's saves. What one has, it loses when it ends.
ONE_RANK_TEST(Folder, IsOfOneRunAtATime) {
  const SharedFolder folder;
  {
    const FolderLock mine(folder / "state");
    EXPECT_THROW(FolderLock(folder / "state", 0), UsageError);
    const FolderLock other(folder / "another", 0);
  }
  const FolderLock next(folder / "state", 0);
}

}  // namespace
}  // namespace fivecuts::zero_redundancy
