#pragma once
// What the tests of checkpoints run.
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "ch07_zero/checkpoint.hpp"
#include "ch07_zero/save_folder.hpp"
#include "ch07_zero/test_cases.hpp"
#include "common/comm/world.hpp"

namespace fivecuts::zero_redundancy {

namespace fs = std::filesystem;

/// Of the ranks of a test one does what concerns a file, when all have come, and all see it done.
template <class F>
void one_does(const F& work) {
  test_context().world.barrier();
  test_context().world.on_rank_0([&] {
    work();
    return std::string();
  });
}

/// A folder that all ranks of a test see, gone at its end. In memory where it can be: tests ask for
/// hundreds of flushes, and what a flush is worth only a power cut could show.
class SharedFolder {
 public:
  SharedFolder() {
    static std::atomic<int> number = 0;
    path_ = test_context().world.on_rank_0([&] {
      const fs::path memory = "/dev/shm";
      const fs::path path = (fs::exists(memory) ? memory : fs::temp_directory_path()) /
                            fmt::format("fivecuts_ch07_{}_{}", getpid(), ++number);
      fs::create_directories(path);
      return path.string();
    });
  }
  SharedFolder(const SharedFolder&) = delete;
  ~SharedFolder() {
    one_does([&] { fs::remove_all(path_); });
  }
  fs::path operator/(const std::string& name) const { return path_ / name; }

 private:
  fs::path path_;
};

inline Recipe recipe(const ModelShape& model, DType precision = DType::f32) {
  return {model, precision, 3, 40, 1e-3, 0};
}

/// Steps [first, end) of a training whose batches depend on the number of the step alone.
inline void train_steps(Trainer& trainer, Context& context, const Communicator& comm, int first,
                        int end) {
  for (int step = first; step < end; ++step) {
    auto rows = shuffled(digits().train.count(), 5, static_cast<std::uint32_t>(step));
    rows.resize(static_cast<std::size_t>(40 - step));
    trainer.step(data_parallel::load_shards(context.device, digits().train, rows, comm, 1,
                                            trainer.settings().precision),
                 {});
  }
}

inline std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
inline void put_text(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}
/// The folder of shards in a checkpoint where there is one alone.
inline fs::path shards_in(const fs::path& checkpoint) {
  for (const auto& entry : fs::directory_iterator(checkpoint)) {
    if (entry.is_directory()) return entry.path();
  }
  return {};
}

/// What resume() says of a checkpoint: "" if it takes it. The same on every rank, or else all that
/// they say.
inline std::string refusal(const Recipe& run, const fs::path& checkpoint, Communicator& comm) {
  Trainer trainer(test_context().device, comm, run.model, 3, {3, run.precision});
  std::string said;
  try {
    resume(trainer, comm, run, checkpoint);
  } catch (const UsageError& error) {
    said = std::string("usage: ") + error.what();
  } catch (const Failure& error) {
    said = std::string("failure: ") + error.what();
  }
  const auto all = comm.gather_text(said);
  for (const std::string& other : all) {
    if (other != all.front()) said += " BUT ANOTHER RANK SAYS " + other;
  }
  return said;
}

inline bool has(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

/// Why `folder` cannot be saved to; empty if it can.
inline std::string refused_folder(const fs::path& folder, const fs::path* resumed = nullptr) {
  try {
    check_save_folder(test_context().world, folder, resumed);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace fivecuts::zero_redundancy
