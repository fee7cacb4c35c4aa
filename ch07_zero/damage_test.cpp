// Checkpoints that are not whole, not ours, or of something else; and saves that end half-way.
#include <sys/stat.h>

#include "ch07_zero/checkpoint_cases.hpp"

namespace fivecuts::zero_redundancy {
namespace {

/// A checkpoint, and what is made of copies of it.
class Damage {
 public:
  explicit Damage(Communicator& comm) : comm_(comm) {
    for (const int step : {1, 2}) {
      Trainer trainer(test_context().device, comm, run_.model, 3, {.stage = 2});
      train_steps(trainer, test_context(), comm, 0, step);
      save(trainer, comm, run_, step, folder_ / (step == 1 ? "earlier" : "whole"));
    }
    EXPECT_EQ(refusal(run_, folder_ / "whole", comm), "");
  }

  const Recipe& run() const { return run_; }
  /// Of the checkpoint that `change` makes of `copy`, a copy of the whole one; `earlier` is another
  /// one of the same run.
  std::string refusal_after(
      const std::function<void(const fs::path& copy, const fs::path& earlier)>& change) {
    const fs::path copy = folder_ / "copy";
    one_does([&] {
      fs::remove_all(copy);
      fs::copy(folder_ / "whole", copy, fs::copy_options::recursive);
      change(copy, folder_ / "earlier");
    });
    return refusal(run_, copy, comm_);
  }
  /// The same for a change of the bytes of one file: manifest.json, or one of the shards.
  std::string refusal_with(const std::string& name,
                           const std::function<void(std::string& bytes)>& change) {
    return refusal_after([&](const fs::path& copy, const fs::path&) {
      const fs::path file = (name == "manifest.json" ? copy : shards_in(copy)) / name;
      std::string bytes = text_of(file);
      change(bytes);
      put_text(file, bytes);
    });
  }

 private:
  Communicator& comm_;
  SharedFolder folder_;
  Recipe run_ = recipe(with_empty_shards());
};

void flip(std::string& bytes, std::size_t at, int bit = 0) {
  bytes[at] = static_cast<char>(bytes[at] ^ 1 << bit);
}

// A pipe, a device or a folder in the place of a file: refused, and not waited for.
RANK_TEST(Damage, WhatIsNoFileIsNotOpened) {
  Communicator comm = dp();
  Damage damage(comm);
  const std::string shard = fmt::format("rank-{}.safetensors", comm.size() - 1);
  for (const std::string& name : {shard, std::string("manifest.json")}) {
    const auto in_its_place = [&](const std::function<void(const fs::path&)>& make) {
      const std::string said = damage.refusal_after([&](const fs::path& copy, const fs::path&) {
        const fs::path file = (name == shard ? shards_in(copy) : copy) / name;
        fs::remove(file);
        make(file);
      });
      EXPECT_TRUE(said.starts_with("failure: cannot read '") && has(said, name) &&
                  has(said, "it is no plain file") && !has(said, "BUT"))
          << said;
    };
    in_its_place([](const fs::path& file) { EXPECT_EQ(mkfifo(file.c_str(), 0600), 0); });
    in_its_place([](const fs::path& file) { fs::create_directory(file); });
    in_its_place([](const fs::path& file) { fs::create_symlink("/dev/zero", file); });
  }
}

RANK_TEST(Damage, OfAShardIsRefused) {
  Communicator comm = dp();
  Damage damage(comm);
  const std::string last = fmt::format("rank-{}.safetensors", comm.size() - 1);
  const auto refused = [&](const char* why, const auto& change) {
    const std::string said = damage.refusal_with(last, change);
    EXPECT_TRUE(said.starts_with("failure: '") && has(said, last) && has(said, why) &&
                !has(said, "BUT"))
        << said;
  };
  using Bytes = std::string&;
  for (const double share : {0.0, 0.1, 0.5, 0.9}) {
    refused("it was cut short", [&](Bytes bytes) {
      bytes.resize(static_cast<std::size_t>(share * static_cast<double>(bytes.size())));
    });
  }
  refused("it was cut short", [](Bytes bytes) { bytes.pop_back(); });
  refused("or changed", [](Bytes bytes) { bytes += '\0'; });
  for (const std::size_t at : {0u, 7u, 8u, 100u}) {
    refused("its header is another one", [&](Bytes bytes) { flip(bytes, at, 3); });
  }
  // The last layer's second moments end the file, the first layer's weights begin after the header.
  refused("layers.3.second_moment has other bits",
          [](Bytes bytes) { flip(bytes, bytes.size() - 1); });
  refused("layers.0.weights has other bits", [](Bytes bytes) {
    std::uint64_t header = 0;
    std::memcpy(&header, bytes.data(), sizeof header);
    flip(bytes, 8 + header);
  });
}

// Any byte of it, at one rank; some at others.
RANK_TEST(Damage, OfTheManifestIsRefused) {
  Communicator comm = dp();
  Damage damage(comm);
  std::size_t size = 0;
  EXPECT_EQ(damage.refusal_with("manifest.json", [&](std::string& bytes) { size = bytes.size(); }),
            "");
  size = comm.gather(size).front();
  const auto refused = [&](const auto& change) {
    const std::string said = damage.refusal_with("manifest.json", change);
    EXPECT_TRUE(said.starts_with("failure: '") &&
                has(said, "/copy/manifest.json' is no manifest") && !has(said, "BUT"))
        << said;
  };
  for (std::size_t at = 0; at < size; at += once() ? 5 : size / 3) {
    refused([&](std::string& bytes) { flip(bytes, at, static_cast<int>(at % 7)); });
  }
  for (const std::size_t kept : {std::size_t{0}, std::size_t{1}, size / 2, size - 2, size - 1}) {
    refused([&](std::string& bytes) { bytes.resize(kept); });
  }
  for (const char* other : {"{}", "[1]", "null", R"({"checkpoint": {"format": "zip"}})"}) {
    refused([&](std::string& bytes) { bytes = other; });
  }
}

// A version that will come is not damage.
RANK_TEST(Damage, ANewerFormatIsNamed) {
  Communicator comm = dp();
  Damage damage(comm);
  const std::string said = damage.refusal_with("manifest.json", [](std::string& bytes) {
    bytes.replace(bytes.find("\"version\": 1"), 12, "\"version\": 2");
  });
  EXPECT_TRUE(has(said, "this program reads version 1 of the format")) << said;
}

RANK_TEST(Damage, MissingAndForeignFilesAreRefused) {
  Communicator comm = dp();
  Damage damage(comm);
  const auto said = [&](const auto& change) { return damage.refusal_after(change); };
  const std::string rank_0 = "rank-0.safetensors";
  const auto expect = [](const std::string& text, const std::string& start,
                         const std::string& why) {
    EXPECT_TRUE(text.starts_with(start) && has(text, why) && !has(text, "BUT")) << text;
  };
  expect(said([&](const fs::path& copy, const fs::path&) { fs::remove(shards_in(copy) / rank_0); }),
         "failure: cannot read '", "rank-0.safetensors': No such file");
  expect(said([&](const fs::path& copy, const fs::path&) {
           fs::remove(shards_in(copy) / rank_0);
           fs::create_directory(shards_in(copy) / rank_0);
         }),
         "failure: cannot read '", "rank-0.safetensors': it is no plain file");
  expect(said([](const fs::path& copy, const fs::path&) { fs::remove_all(shards_in(copy)); }),
         "failure: cannot read '", "rank-0.safetensors': No such file");
  expect(said([](const fs::path& copy, const fs::path&) { fs::remove(copy / "manifest.json"); }),
         "usage: there is no checkpoint in '", "/copy/manifest.json'");
  expect(said([](const fs::path& copy, const fs::path&) { fs::remove_all(copy); }),
         "usage: there is no checkpoint in '", "/copy/manifest.json'");
  expect(said([&](const fs::path& copy, const fs::path& earlier) {  // of the same length
           fs::copy_file(shards_in(earlier) / rank_0, shards_in(copy) / rank_0,
                         fs::copy_options::overwrite_existing);
         }),
         "failure: '", "rank-0.safetensors' is not the file that its manifest speaks of");
}

// Of a file of the same run and step with other numbers, the header is the same.
RANK_TEST(Damage, AFileOfAnotherTrainingIsRefused) {
  Communicator comm = dp();
  const SharedFolder folder;
  const Recipe run = recipe(uneven());
  for (const std::uint64_t seed : {3, 4}) {
    const Trainer trainer(test_context().device, comm, run.model, seed, {.stage = 3});
    save(trainer, comm, run, 0, folder / std::to_string(seed));
  }
  one_does([&] {
    fs::copy_file(folder / "3/save-1/rank-0.safetensors", folder / "4/save-1/rank-0.safetensors",
                  fs::copy_options::overwrite_existing);
  });
  const std::string said = refusal(run, folder / "4", comm);
  EXPECT_TRUE(
      has(said, "/4/save-1/rank-0.safetensors' is damaged: layers.0.weights has other bits"))
      << said;
}

RANK_TEST(Foreign, ARunOfAnotherRecipeIsRefused) {
  Communicator comm = dp();
  const SharedFolder folder;
  const Recipe saved = recipe(uneven());
  const Trainer trainer(test_context().device, comm, saved.model, 3, {.stage = 3});
  save(trainer, comm, saved, 0, folder / "state");
  const auto refused = [&](const char* had, const char* has_now, const auto& change) {
    Recipe other = saved;
    change(other);
    const std::string said = refusal(other, folder / "state", comm);
    EXPECT_TRUE(said.starts_with("usage: '") &&
                has(said, "/state/manifest.json' was saved with ") && has(said, had) &&
                has(said, has_now) && !has(said, "BUT"))
        << said;
  };
  refused("--seed 3", "--seed 4", [](Recipe& r) { r.seed = 4; });
  refused("--batch 40", "--batch 41", [](Recipe& r) { r.batch = 41; });
  refused("--precision fp32", "--precision bf16", [](Recipe& r) { r.precision = DType::bf16; });
  refused("--learning-rate 0.001", "--learning-rate 0.002",
          [](Recipe& r) { r.learning_rate = 2e-3; });
  refused("no --clip", "--clip 0.5", [](Recipe& r) { r.clip = 0.5; });
  refused("1857 parameters in 4 layers", "in 3 layers", [](Recipe& r) { r.model.pop_back(); });
  refused("other shapes", "its own", [](Recipe& r) { r.model[0].gelu = false; });
}

// At each moment of a save a copy of the folder is what a crash would leave. It must be the state
// before or the one after, and a run that goes on from it must save as ever.
ONE_RANK_TEST(Crash, AtAnyMomentLeavesACheckpoint) {
  Communicator comm = dp();
  const SharedFolder folder;
  const fs::path state = folder / "state";
  const Recipe run = recipe(uneven());
  Trainer trainer(test_context().device, comm, run.model, 3, {.stage = 3});
  save(trainer, comm, run, 0, state);
  train_steps(trainer, test_context(), comm, 0, 1);
  std::vector<std::string> moments;
  save(trainer, comm, run, 1, state, [&](const std::string& moment) {
    fs::copy(state, folder / std::to_string(moments.size()), fs::copy_options::recursive);
    moments.push_back(moment);
  });
  EXPECT_EQ(moments,
            (std::vector<std::string>{"folder made", "layer written", "layer written",
                                      "layer written", "layer written", "shard written",
                                      "all shards written", "manifest written", "others removed"}));
  for (std::size_t i = 0; i < moments.size(); ++i) {
    const fs::path left = folder / std::to_string(i);
    put_text(left / "manifest.json.part", "{\"checkp");
    Trainer resumed(test_context().device, comm, run.model, 99, {.stage = 1});
    const std::int64_t steps = resume(resumed, comm, run, left).steps;
    EXPECT_EQ(steps, i < 7 ? 0 : 1) << moments[i];
    train_steps(resumed, test_context(), comm, static_cast<int>(steps), 2);
    EXPECT_EQ(refused_folder(left, &left), "");
    save(resumed, comm, run, 2, left);
    EXPECT_EQ(resume(resumed, comm, run, left).steps, 2);
    EXPECT_FALSE(fs::exists(left / "manifest.json.part"));
    EXPECT_EQ(std::distance(fs::directory_iterator(left), {}), 2) << moments[i];
  }
}

// A rank that cannot write is everyone's failure, and the checkpoint before is whole.
RANK_TEST(Crash, OfOneRanksDiskIsSaidByAll) {
  Communicator comm = dp();
  const SharedFolder folder;
  const fs::path state = folder / "state";
  const Recipe run = recipe(uneven());
  Trainer trainer(test_context().device, comm, run.model, 3, {.stage = 2});
  save(trainer, comm, run, 0, state);
  const std::uint64_t before = hash(trainer, comm);
  train_steps(trainer, test_context(), comm, 0, 1);
  for (const char* moment :
       {"folder made", "layer written", "shard written", "all shards written"}) {
    const int rank = std::string(moment) == "all shards written" ? 0 : comm.size() - 1;
    std::string said;
    try {
      save(trainer, comm, run, 1, state, [&](const std::string& at) {
        if (at == moment && comm.rank() == rank) throw std::runtime_error("the disk is full");
      });
    } catch (const Failure& failure) {
      said = failure.what();
    }
    EXPECT_TRUE(said.starts_with("the disk is full")) << said;
    Trainer resumed(test_context().device, comm, run.model, 99, {.stage = 3});
    EXPECT_EQ(resume(resumed, comm, run, state).steps, 0);
    EXPECT_EQ(hash(resumed, comm), before);
  }
  save(trainer, comm, run, 1, state);
  comm.barrier();
  EXPECT_EQ(std::distance(fs::directory_iterator(state), {}), 2);
}

}  // namespace
}  // namespace fivecuts::zero_redundancy
