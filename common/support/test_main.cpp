#include "common/support/test_main.hpp"

#include <unistd.h>

#include <cmath>
#include <fstream>
#include <regex>

#include "common/support/main.hpp"

#include "common/comm/transport_mpi.hpp"
#include "common/comm/world.hpp"

namespace fivecuts {
namespace {

thread_local Context* the_context = nullptr;
int threads = 0;        // ranks of a test, if they are threads
CommonOptions options;  // theirs

/// Collects this rank's failures of the running test, and at its end shares the verdict.
class CollectiveVerdict : public testing::EmptyTestEventListener {
 public:
  int failed_tests() const { return failed_; }
  /// This rank's failures so far in the running test.
  const std::string& failures() const { return failures_; }
  /// Said once for all ranks.
  template <class... Args>
  static void say(fmt::format_string<Args...> format, Args&&... args) {
    if (the_context == nullptr || the_context->rank() == 0) {
      fmt::print(format, std::forward<Args>(args)...);
      std::fflush(stdout);
    }
  }

 private:
  void OnTestPartResult(const testing::TestPartResult& part) override {
    if (!part.failed()) return;
    failures_ += fmt::format(
        "rank {}: {}:{}: {}\n", the_context != nullptr ? the_context->rank() : 0,
        part.file_name() != nullptr ? part.file_name() : "?", part.line_number(), part.message());
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    std::string all = failures_;
    if (the_context != nullptr) {
      all.clear();
      for (const std::string& of_rank : the_context->world.gather_text(failures_)) all += of_rank;
    }
    failures_.clear();
    failed_ += all.empty() ? 0 : 1;
    say("{}[{}] {}.{}\n", all, all.empty() ? "ok" : "FAILED", test.test_suite_name(), test.name());
  }
  void OnTestProgramEnd(const testing::UnitTest& unit) override {
    say("{} tests on {} ranks{}, {} failed\n", unit.test_to_run_count(),
        the_context != nullptr ? the_context->size() : threads,
        the_context != nullptr ? "" : " in threads", failed_);
  }
  std::string failures_;
  int failed_ = 0;
};

}  // namespace

Context& test_context() {
  require(the_context != nullptr, "test_context() is there in a RANK_TEST only");
  return *the_context;
}

std::unique_ptr<Context> another_context(CommonOptions options) {
  const Context& run = test_context();
  if (options.device != Device::Kind::meta) options.device = run.options.device;
  options.gpu = run.options.gpu;
  options.nccl = run.options.nccl;
  return std::make_unique<Context>(run.world.transport().host().split(0, "again"), options);
}

std::int64_t resident_bytes() {
  std::int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

testing::AssertionResult same_picture(const std::string& drawn, const std::string& file) {
  std::ifstream in(source_folder() / file);
  const std::string shown{std::istreambuf_iterator<char>(in), {}};
  static const std::regex number("[0-9]+([.][0-9]+)?");
  const auto apart = [](const std::string& text) {
    std::string without;
    std::vector<double> numbers;
    auto copied = text.begin();
    for (std::sregex_iterator at(text.begin(), text.end(), number), end; at != end; ++at) {
      without.append(copied, (*at)[0].first);
      copied = (*at)[0].second;
      numbers.push_back(std::stod(at->str()));
    }
    without.append(copied, text.end());
    return std::pair(without, numbers);
  };
  const auto [text, numbers] = apart(drawn);
  const auto [want, want_numbers] = apart(shown);
  if (text != want || numbers.size() != want_numbers.size()) {
    return testing::AssertionFailure() << file << " shows something else than is drawn";
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (std::abs(numbers[i] - want_numbers[i]) <= 0.02) continue;
    return testing::AssertionFailure() << file << " has " << want_numbers[i] << " as its number "
                                       << i << ", and " << numbers[i] << " is drawn";
  }
  return testing::AssertionSuccess();
}

namespace {

/// For the moment in which an exception leaves a test. It is not for gtest to catch: the other
/// ranks may be in the middle of the same test, waiting for this one. It ends the run.
void name_running_test() {
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  fmt::print(stderr, "rank {}: an exception ended {}.{}\n",
             the_context != nullptr ? the_context->rank() : 0,
             test != nullptr ? test->test_suite_name() : "the set-up",
             test != nullptr ? test->name() : "");
}

void run_on_thread(Context& context, const std::function<void()>& body) {
  the_context = &context;
  try {
    body();
  } catch (const std::exception& error) {
    name_running_test();
    fmt::print(stderr, "rank {} of {}: {}\n", context.rank(), context.size(), error.what());
    abort_all_ranks(exit_failed);
  }
}

}  // namespace

void on_every_rank(const std::function<void()>& body) {
  if (the_context != nullptr) return body();
  run_world(threads, options, [&](Context& context) { run_on_thread(context, body); });
}

namespace {

/// The status of this process: whether the tests passed on all ranks.
int run_all_tests() {
  auto* verdict = new CollectiveVerdict;  // owned by gtest
  testing::UnitTest& unit = *testing::UnitTest::GetInstance();
  delete unit.listeners().Release(unit.listeners().default_result_printer());
  unit.listeners().Append(verdict);
  GTEST_FLAG_SET(catch_exceptions, false);
  try {
    const int unused = RUN_ALL_TESTS();
    static_cast<void>(unused);  // of this rank alone; the verdict is everyone's
  } catch (...) {
    fmt::print(stderr, "{}", verdict->failures());
    name_running_test();
    throw;
  }
  if (unit.test_to_run_count() == 0) {
    CollectiveVerdict::say("no test ran\n");
    return exit_failed;
  }
  return verdict->failed_tests() == 0 ? exit_ok : exit_failed;
}

}  // namespace

}  // namespace fivecuts

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  fivecuts::Program program{
      "test",
      "tests under mpirun, or of ranks as threads (--world); --gtest_filter and the like work too",
      nullptr, [](fivecuts::Context& context) {
        fivecuts::the_context = &context;
        return fivecuts::run_all_tests();
      }};
  program.starts_threads = [](int ranks, const fivecuts::CommonOptions& chosen) {
    fivecuts::threads = ranks;
    fivecuts::options = chosen;
    return fivecuts::run_all_tests();
  };
  return fivecuts::run_program(argc, argv, program);
}
