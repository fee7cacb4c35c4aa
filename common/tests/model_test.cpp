// Random numbers, the digits, and the comparison that all verdicts rest on.
#include <algorithm>
#include <set>

#include "common/model/compare.hpp"
#include "common/model/digits.hpp"
#include "common/tests/helpers.hpp"

namespace fivecuts {
namespace {

// Known answers of the authors' library, Random123 (kat_vectors, philox4x32 10).
RANK_TEST(Random, PhiloxGivesTheKnownAnswers) {
  using Words = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

RANK_TEST(Random, AnySliceHasTheBitsOfTheWhole) {
  Device& device = test_context().device;
  const Buffer whole(device, Category::workspace, 17, 13);
  fill_uniform(whole, 42, 5, 0.3f);
  const std::vector<float> all = copy_out(whole);
  for (const std::int64_t parts : {1, 2, 3, 4, 20}) {
    for (std::int64_t index = 0; index < parts; ++index) {
      const Part rows = part_of(17, static_cast<int>(parts), static_cast<int>(index));
      const Part cols = part_of(13, static_cast<int>(parts), static_cast<int>(parts - 1 - index));
      const Buffer slice(device, Category::workspace, rows.count, cols.count);
      fill_uniform(slice, 42, 5, 0.3f, rows.first, cols.first);
      const std::vector<float> got = copy_out(slice);
      for (std::int64_t i = 0; i < slice.tensor().count(); ++i) {
        const std::int64_t r = rows.first + i / cols.count, c = cols.first + i % cols.count;
        EXPECT_EQ(got[static_cast<std::size_t>(i)], all[static_cast<std::size_t>(r * 13 + c)]);
      }
    }
  }
}

RANK_TEST(Random, UniformFillsItsRangeAndDependsOnEachKey) {
  constexpr int n = 300;
  double sum = 0, squares = 0;
  std::set<float> distinct;
  for (int r = 0; r < n; ++r) {
    for (int c = 0; c < n; ++c) {
      const float x = uniform(1, 2, r, c);
      ASSERT_TRUE(x >= -1 && x < 1);
      sum += static_cast<double>(x);
      squares += static_cast<double>(x) * static_cast<double>(x);
      distinct.insert(x);
    }
  }
  EXPECT_NEAR(sum / (n * n), 0, 0.01);
  EXPECT_NEAR(squares / (n * n), 1.0 / 3, 0.01);
  EXPECT_GT(distinct.size(), n * n * 99u / 100u);
  const float x = uniform(1, 2, 3, 4);
  EXPECT_NE(x, uniform(1 | (1ull << 40), 2, 3, 4)) << "all 64 bits of the seed count";
  EXPECT_NE(x, uniform(1, 3, 3, 4));
  EXPECT_NE(x, uniform(1, 2, 4, 4));
  EXPECT_NE(x, uniform(1, 2, 4, 3));
  EXPECT_NE(x, uniform(1, 2, 3, 5));
}

RANK_TEST(Random, ShuffledIsAPermutationOfItsOwnForEachEpoch) {
  for (const std::int64_t count : {0, 1, 2, 1438}) {
    std::vector<std::int64_t> numbers = shuffled(count, 3, 0);
    EXPECT_EQ(numbers, shuffled(count, 3, 0));
    std::sort(numbers.begin(), numbers.end());
    ASSERT_EQ(static_cast<std::int64_t>(numbers.size()), count);
    for (std::int64_t i = 0; i < count; ++i) EXPECT_EQ(numbers[static_cast<std::size_t>(i)], i);
  }
  const auto first = shuffled(1438, 3, 0);
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
  EXPECT_NE(first, shuffled(1438, 3, 1));
  EXPECT_NE(first, shuffled(1438, 4, 0));
}

RANK_TEST(Digits, AreAllThereAndSplit) {
  const Digits digits = load_digits();
  EXPECT_EQ(digits.train.count(), 1438);
  EXPECT_EQ(digits.test.count(), 359);
  std::array<int, 10> of_class{};
  for (const Samples* samples : {&digits.train, &digits.test}) {
    ASSERT_EQ(static_cast<std::int64_t>(samples->x.size()), samples->count() * Samples::pixels);
    EXPECT_EQ(*std::min_element(samples->x.begin(), samples->x.end()), 0);
    EXPECT_EQ(*std::max_element(samples->x.begin(), samples->x.end()), 1);
    for (const std::int64_t label : samples->labels) ++of_class.at(static_cast<std::size_t>(label));
  }
  EXPECT_EQ(*std::min_element(of_class.begin(), of_class.end()), 174);
  EXPECT_EQ(*std::max_element(of_class.begin(), of_class.end()), 183);
  EXPECT_EQ(digits.train.labels[0], 0);
  EXPECT_EQ(digits.train.x[3], 13 / 16.0f) << "the first row has a 13 there";
  EXPECT_EQ(digits.test.labels[0], 4) << "the fifth row of the file";
}

RANK_TEST(Digits, MalformedFilesAreRefusedWithTheLine) {
  std::string pixels;
  for (int k = 0; k < 64; ++k) pixels += fmt::format("{},", k % 17);
  const std::string good = pixels + "7\n", windows = pixels + "7\r\n";
  const auto said = [](const std::string& content) {
    const TemporaryFile file(content);
    const std::string text = message_of<Failure>([&] { load_digits(file.path); });
    return has(text, file.path.string()) ? text : "names no file: " + text;
  };
  const TemporaryFile fine(good + windows + good + good + good);
  EXPECT_EQ(load_digits(fine.path).train.count(), 4);
  for (const std::string& bad :
       {pixels + "10\n", pixels + "-1\n", pixels + "\n", pixels + "7,1\n", "0," + pixels + "7\n",
        "x," + good, "17" + good, "1x" + good, "0.5" + good, " " + good,
        "99999999999999999999" + good, std::string("\n"), std::string("a,b\n")}) {
    EXPECT_TRUE(has(said(good + good + bad + good + good), "line 3:"))
        << bad << said(good + good + bad + good + good);
  }
  EXPECT_TRUE(has(said(""), "no digits"));
  EXPECT_TRUE(
      has(message_of<Failure>([] { load_digits("/no/such/digits.csv"); }), "/no/such/digits.csv"));
}

/// The verdict on `got` against `want`, which must be the same on all ranks.
Verdict judge(const std::vector<float>& got, const std::vector<double>& want,
              std::int64_t first = 0) {
  Communicator& world = test_context().world;
  const Verdict mine = compare(world, "w", got, want, Tolerance{1e-5, 1e-3}, first);
  for (const std::string& text : world.gather_text(mine.text)) EXPECT_EQ(text, mine.text);
  EXPECT_TRUE(world.all_true(mine.ok) || world.all_true(!mine.ok)) << "the ranks disagree";
  return mine;
}

std::vector<double> of_rank(int rank) { return {10.0 * rank, 10.0 * rank + 1, 10.0 * rank + 2}; }

std::vector<float> floats(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

RANK_TEST(Compare, AcceptsWhatIsWithin) {
  const int rank = test_context().rank(), size = test_context().size();
  const Verdict verdict = judge({-1000.9f, 5e-6f, 1}, {-1000, 0, 1});
  EXPECT_TRUE(verdict.ok) << verdict.text;
  EXPECT_TRUE(has(verdict.text, fmt::format("within 9.0e-01 of golden ({} rank", size)) &&
              has(verdict.text, "x 3 elements)"))
      << verdict.text;
  EXPECT_TRUE(judge(floats(of_rank(rank)), of_rank(rank), 3 * rank).ok);
  EXPECT_TRUE(judge({}, {}).ok);
  EXPECT_TRUE(judge(rank == 0 ? std::vector<float>{1} : std::vector<float>{},
                    rank == 0 ? std::vector<double>{1} : std::vector<double>{})
                  .ok)
      << "empty shards";
  EXPECT_FALSE(judge({-1001.1f}, {-1000}).ok);
  EXPECT_FALSE(judge({1.2e-5f}, {0}).ok);
}

RANK_TEST(Compare, ReportsWhatIsNoNumber) {
  const float huge = HUGE_VALF;
  for (const auto& [got, want] : {std::pair{nan_f, 1.0},
                                  {1.0f, nan_d},
                                  {nan_f, nan_d},
                                  {huge, 1.0},
                                  {1.0f, infinity},
                                  {1.0f, -infinity},
                                  {huge, -infinity},
                                  {-huge, 1.0}}) {
    const Verdict verdict = judge({1, got, 1}, {1, want, 1});
    EXPECT_FALSE(verdict.ok) << got << " passed for " << want;
    EXPECT_TRUE(has(verdict.text, "rank 0, element 1:")) << verdict.text;
  }
}

RANK_TEST(Compare, ReportsTheLastElement) {
  std::vector<double> want(1000, 1.0);
  std::vector<float> got = floats(want);
  got.back() = 1.5f;
  const Verdict verdict = judge(got, want, 4000);
  EXPECT_FALSE(verdict.ok);
  EXPECT_TRUE(has(verdict.text, "w: rank 0, element 4999: got 1.5, want 1 (1 of 1000"))
      << verdict.text;
}

RANK_TEST(Compare, ReportsSwappedRanksAndOneBadRank) {
  const int rank = test_context().rank(), size = test_context().size();
  if (size < 2) return;
  const int holds = rank < 2 ? 1 - rank : rank;
  const Verdict swapped = judge(floats(of_rank(holds)), of_rank(rank), 3 * rank);
  EXPECT_FALSE(swapped.ok);
  EXPECT_TRUE(has(swapped.text, "rank 0, element 0: got 10, want 0")) << swapped.text;
  EXPECT_TRUE(has(swapped.text, fmt::format("on 2 of {} ranks", size))) << swapped.text;

  std::vector<float> got = floats(of_rank(rank));
  if (rank == size - 1) got[2] += 1;
  const Verdict one_bad = judge(got, of_rank(rank), 3 * rank);
  EXPECT_FALSE(one_bad.ok);
  EXPECT_TRUE(has(one_bad.text, fmt::format("rank {}, element {}:", size - 1, 3 * size - 1)))
      << one_bad.text;
  EXPECT_TRUE(has(one_bad.text, fmt::format("on 1 of {} ranks", size))) << one_bad.text;
}

RANK_TEST(Compare, ReportsUnequalCounts) {
  const int rank = test_context().rank(), size = test_context().size();
  const Verdict verdict = judge(std::vector<float>(rank == size - 1 ? 2 : 3, 0.0f), {0, 0, 0});
  EXPECT_FALSE(verdict.ok);
  EXPECT_TRUE(has(verdict.text, fmt::format("rank {} has 2 elements, golden has 3", size - 1)))
      << verdict.text;
  EXPECT_FALSE(judge({}, {0}).ok);
}

}  // namespace
}  // namespace fivecuts
