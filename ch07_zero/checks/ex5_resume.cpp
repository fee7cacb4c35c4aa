#include "ch07_zero/checks/measured.hpp"

using namespace fivecuts;
using namespace fivecuts::exercise;

namespace {

/// What M ranks saved of a bucket: element i is `value(0, 0, i)` plus a thousand for each 100, so
/// that every place looks different from its neighbours.
std::vector<double> saved(std::int64_t count) {
  std::vector<double> all;
  for (std::int64_t i = 0; i < count; ++i) {
    all.push_back(value(0, 0, i) + 1000 * static_cast<double>(i / 100));
  }
  return all;
}

void check_case(ExerciseCheck& check, std::int64_t count, int savers) {
  Communicator& comm = check.comm();
  Context& context = check.context();
  const int n = comm.size(), r = comm.rank();
  const Part mine = part_of(count, n, r);
  const std::vector<double> all = saved(count);
  const std::string where =
      fmt::format("{} elements, saved by {} ranks, resumed on {}", count, savers, n);
  std::int64_t elements = 0, opened = 0, needed = 0;
  std::string outside;
  const auto read = [&](int m, std::int64_t first, Tensor to) {
    const Part file = m >= 0 && m < savers ? part_of(count, savers, m) : Part{};
    if (m < 0 || m >= savers || first < 0 || first + to.count() > file.count) {
      if (outside.empty()) {
        outside = fmt::format(
            "{}: rank {} asked file {} for {} elements from {} on; the files are 0 to {}, and that "
            "one has {}: `first` counts from the beginning of the file",
            where, r, m, to.count(), first, savers - 1, file.count);
      }
      return;
    }
    ++opened;
    elements += to.count();
    const auto values = part(all, {file.first + first, to.count()});
    copy_in(std::vector<float>(values.begin(), values.end()), to);
  };
  for (int m = 0; m < savers; ++m) {
    const Part file = part_of(count, savers, m);
    const bool overlaps = file.first < mine.first + mine.count &&
                          mine.first < file.first + file.count && file.count > 0 && mine.count > 0;
    needed += overlaps ? 1 : 0;
  }
  const Buffer shard = loaded(context, Category::parameter,
                              std::vector<double>(static_cast<std::size_t>(mine.count), -1));
  const Used used = measured(check, [&] { resume(comm, count, savers, read, shard); });
  check.holds(outside.empty(), outside);
  const ExerciseCheck::Mistake mistakes[] = {
      {std::vector<double>(static_cast<std::size_t>(mine.count), -1), "nothing was read into it"}};
  check.equal(where + ", this rank's shard", copy_out(shard), part(all, mine), mistakes);
  check.at_most(fmt::format("read elements ({} of the bucket's {} are its own)", mine.count, count),
                elements, mine.count);
  check.at_most("opened files", opened, needed);
  check.at_most("allocated bytes", used.allocated, 0);
  check.at_most("sent messages", used.sent.messages, 0);
}

}  // namespace

int main(int argc, char** argv) {
  return run_exercise(argc, argv, "ch07_ex5",
                      "each rank's shard from any number of files, and nothing else read",
                      [](ExerciseCheck& check) {
                        for (const int savers : {1, 2, 3, 4, 7}) {
                          for (const std::int64_t count : {1857, 1000, 2, 0}) {
                            check_case(check, count, savers);
                          }
                        }
                      });
}
