#include "common/support/test_main.hpp"

#include "common/support/main.hpp"

namespace fivecuts {
namespace {

Context* the_context = nullptr;

/// Collects this rank's failures of the running test, and at its end shares the verdict.
class CollectiveVerdict : public testing::EmptyTestEventListener {
 public:
  int failed_tests() const { return failed_; }
  /// This rank's failures so far in the running test.
  const std::string& failures() const { return failures_; }

 private:
  void OnTestPartResult(const testing::TestPartResult& part) override {
    if (!part.failed()) return;
    failures_ += fmt::format("rank {}: {}:{}: {}\n", the_context->rank(),
                             part.file_name() != nullptr ? part.file_name() : "?",
                             part.line_number(), part.message());
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    std::string all;
    for (const std::string& of_rank : the_context->world.gather_text(failures_)) all += of_rank;
    failures_.clear();
    failed_ += all.empty() ? 0 : 1;
    the_context->say("{}[{}] {}.{}\n", all, all.empty() ? "ok" : "FAILED", test.test_suite_name(),
                     test.name());
  }
  void OnTestProgramEnd(const testing::UnitTest& unit) override {
    the_context->say("{} tests on {} ranks, {} failed\n", unit.test_to_run_count(),
                     the_context->size(), failed_);
  }
  std::string failures_;
  int failed_ = 0;
};

}  // namespace

Context& test_context() { return *the_context; }

namespace {

/// Whether the tests passed on all ranks. An exception is not for gtest to catch: the other ranks
/// may be in the middle of the same test, waiting for this one. It ends the run, after the test's
/// name.
bool run_all_tests(const CollectiveVerdict& verdict) {
  GTEST_FLAG_SET(catch_exceptions, false);
  try {
    const int unused = RUN_ALL_TESTS();
    static_cast<void>(unused);  // of this rank alone; the verdict is everyone's
  } catch (...) {
    const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
    fmt::print(stderr, "{}rank {}: an exception ended {}.{}\n", verdict.failures(),
               the_context->rank(), test != nullptr ? test->test_suite_name() : "the set-up",
               test != nullptr ? test->name() : "");
    throw;
  }
  return verdict.failed_tests() == 0;
}

}  // namespace

}  // namespace fivecuts

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return fivecuts::run_program(argc, argv,
                               {"test", "tests under mpirun; --gtest_filter and the like work too",
                                nullptr, [](fivecuts::Context& context) -> int {
                                  fivecuts::the_context = &context;
                                  auto* verdict =
                                      new fivecuts::CollectiveVerdict;  // owned by gtest
                                  auto& listeners = testing::UnitTest::GetInstance()->listeners();
                                  delete listeners.Release(listeners.default_result_printer());
                                  listeners.Append(verdict);
                                  const bool passed = fivecuts::run_all_tests(*verdict);
                                  if (testing::UnitTest::GetInstance()->test_to_run_count() == 0) {
                                    context.say("no test ran\n");
                                    return fivecuts::exit_failed;
                                  }
                                  return passed ? fivecuts::exit_ok : fivecuts::exit_failed;
                                }});
}
