// What is said of a value that a flag does not take.
#include "common/support/main.hpp"
#include "common/support/test_main.hpp"

namespace fivecuts {
namespace {

/// Gives `app` the words, and returns its refusal.
std::string refusal(CLI::App& app, std::vector<std::string> words) {
  std::ranges::reverse(words);  // as CLI11 takes them
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return "";
}

/// Refuses `wrong`, and takes what the refusal says instead.
void expect_useful(CLI::App& app, const std::string& wrong) {
  const std::string said = refusal(app, {"--flag", wrong}), words = ", as in --flag ";
  const auto at = said.find(words);
  ASSERT_NE(at, std::string::npos) << said;
  EXPECT_EQ(refusal(app, {"--flag", said.substr(at + words.size())}), "") << said;
}

// Whatever the flag's own value is: it may mean that there is no limit.
ONE_RANK_TEST(Flags, SuggestWhatTheyTake) {
  for (const double value : {-1.0, 0.0, 0.003, 5.0}) {
    for (const double most : {0.01, 1.0, 1e6}) {
      CLI::App app;
      double number = value;
      add_positive(app, "--flag", number, most, "");
      for (const char* wrong : {"-1", "0", "nan", "1e7", "many", ""}) expect_useful(app, wrong);
    }
  }
  for (const std::int64_t value : {-3, 0, 1, 9}) {
    CLI::App app;
    std::int64_t number = value;
    add_count(app, "--flag", number, 1, 4, "");
    for (const char* wrong : {"-1", "0", "5", "1.5", "many", ""}) expect_useful(app, wrong);
  }
}

}  // namespace
}  // namespace fivecuts
