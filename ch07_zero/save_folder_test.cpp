// The folder of a checkpoint: what else may lie in it, and who may save to it.
#include "ch07_zero/checkpoint_cases.hpp"

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
