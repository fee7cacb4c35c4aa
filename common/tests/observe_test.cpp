// Ledgers, tables, units and claims: what a run says about itself.
#include <fstream>
#include <set>
#include <thread>

#include "common/observe/claims.hpp"
#include "common/observe/memory_ledger.hpp"
#include "common/observe/table.hpp"
#include "common/observe/traffic_ledger.hpp"
#include "common/support/main.hpp"
#include "common/support/units.hpp"
#include "common/tests/helpers.hpp"

namespace fivecuts {
namespace {

RANK_TEST(MemoryLedger, KeepsLiveAndPeakByCategory) {
  MemoryLedger ledger;
  ledger.allocate(Category::parameter, 100);
  ledger.allocate(Category::activation, 40);
  ledger.release(Category::activation, 40);
  ledger.allocate(Category::gradient, 30);
  ledger.allocate(Category::optimizer, 7);
  EXPECT_EQ(ledger.live(Category::parameter), 100);
  EXPECT_EQ(ledger.live(Category::activation), 0);
  EXPECT_EQ(ledger.peak(Category::activation), 40);
  EXPECT_EQ(ledger.live(), 137);
  EXPECT_EQ(ledger.peak(), 140) << "the highest total, not 177, the sum of the peaks";
  EXPECT_EQ(ledger.model_state(), 137);
  ledger.allocate(Category::workspace, 1);
  EXPECT_EQ(ledger.model_state(), 137);
  ledger.release(Category::parameter, 100);
  ledger.reset_peak();
  EXPECT_EQ(ledger.peak(Category::parameter), 0);
  EXPECT_EQ(ledger.peak(Category::gradient), 30);
  EXPECT_EQ(ledger.peak(), 38);
}

RANK_TEST(MemoryLedger, TellsWhoWatchesOfEachChange) {
  MemoryLedger ledger(100);
  std::vector<MemoryLedger::Live> seen;
  ledger.allocate(Category::parameter, 10);
  ledger.watch([&](const MemoryLedger::Live& live) { seen.push_back(live); });
  ledger.allocate(Category::workspace, 3);
  EXPECT_THROW(ledger.allocate(Category::gradient, 100), OutOfMemory);
  ledger.release(Category::parameter, 10);
  ledger.watch(nullptr);
  ledger.release(Category::workspace, 3);
  EXPECT_EQ(seen, (std::vector<MemoryLedger::Live>{{10, 0, 0, 0, 3}, {0, 0, 0, 0, 3}}));
}

RANK_TEST(MemoryLedger, RefusesOverTheCapAndBooksNothing) {
  MemoryLedger ledger(1000);
  ledger.allocate(Category::parameter, 600);
  ledger.allocate(Category::activation, 400);  // exactly full is no error
  ledger.release(Category::activation, 400);
  ledger.reset_peak();
  const std::string said =
      message_of<OutOfMemory>([&] { ledger.allocate(Category::optimizer, 1400); });
  EXPECT_TRUE(has(said, "1.4 KB for optimizer")) << said;
  EXPECT_TRUE(has(said, "is 1 KB more than fits under --memory 1 KB")) << said;
  EXPECT_TRUE(has(said, "in use: parameter 600 B")) << said;
  EXPECT_EQ(ledger.live(Category::optimizer), 0);
  EXPECT_EQ(ledger.peak(Category::optimizer), 0);
  EXPECT_EQ(ledger.live(), 600);
  EXPECT_EQ(ledger.peak(), 600);
  EXPECT_THROW(ledger.allocate(Category::workspace, 401), OutOfMemory);
  EXPECT_NO_THROW(ledger.allocate(Category::workspace, 400));
}

RANK_TEST(MemoryLedger, CountsForTwoThreads) {
  MemoryLedger ledger;
  const auto work = [&](Category category) {
    for (int i = 0; i < 10000; ++i) {
      ledger.allocate(category, 3);
      ledger.release(category, 2);
    }
  };
  std::thread other(work, Category::gradient);
  work(Category::activation);
  other.join();
  EXPECT_EQ(ledger.live(), 20000);
  EXPECT_EQ(ledger.live(Category::gradient), 10000);
}

RANK_TEST(TrafficLedger, AddsPerCommunicatorAndKeepsModelledApart) {
  TrafficLedger ledger;
  ledger.add({"dp", "send"}, {100, 0, 60, 1});
  ledger.add({"dp", "send"}, {10, 0, 0, 1});
  ledger.add({"dp", "receive"}, {0, 50, 0, 0});
  ledger.add({"tp", "send"}, {1, 2, 0, 1});
  ledger.add({"dp", "all_reduce", true}, {1000, 1000, 0, 6});
  EXPECT_EQ(ledger.measured("dp"), (Traffic{110, 50, 60, 2}));
  EXPECT_EQ(ledger.measured(), (Traffic{111, 52, 60, 3}));
  EXPECT_EQ(ledger.modelled(), (Traffic{1000, 1000, 0, 6}));
  EXPECT_EQ(ledger.modelled("tp"), Traffic{});
  EXPECT_EQ(ledger.measured("no such"), Traffic{});
  EXPECT_EQ(ledger.rows().size(), 4u);
  EXPECT_EQ(ledger.measured("dp") - ledger.measured("tp"), (Traffic{109, 48, 60, 1}));
  ledger.reset();
  EXPECT_TRUE(ledger.rows().empty());
}

RANK_TEST(Table, CountsTerminalCells) {
  EXPECT_EQ(display_width(""), 0);
  EXPECT_EQ(display_width("rank 3"), 6);
  EXPECT_EQ(display_width("数据并行"), 8);
  EXPECT_EQ(display_width("显存（GB）"), 10);
  EXPECT_EQ(display_width("2·(N−1)/N × α"), 13);
}

RANK_TEST(Table, AlignsNumbersRightAndTextLeft) {
  Table table({"切分", "bytes", "Δ"});
  table.row({"数据", "5", "-12.5"});
  table.row({"pipeline", "12345", "3"});
  EXPECT_EQ(table.text(),
            "  切分      bytes      Δ\n"
            "  数据          5  -12.5\n"
            "  pipeline  12345      3\n");
  EXPECT_THROW(table.row({"one", "cell too few"}), Failure);
}

RANK_TEST(Table, KeepsMixedColumnsLeftAndSurvivesEmptyCells) {
  Table table({"", ""});
  table.row({"", ""});
  table.row({"4", "-"});
  EXPECT_EQ(table.text(), "\n\n  4  -\n");
  EXPECT_EQ(Table({"a", "b"}).text(), "  a  b\n");
  EXPECT_EQ(Table({}).text(), "\n");
}

RANK_TEST(Wrap, BreaksAtSpacesAndBetweenWideCharacters) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(wrap("each rank keeps a part", 10), (Lines{"each rank", "keeps a", "part"}));
  EXPECT_EQ(wrap("梯度在所有副本上求和", 8), (Lines{"梯度在所", "有副本上", "求和"}));
  EXPECT_EQ(wrap("用 all-reduce 求和", 12), (Lines{"用", "all-reduce", "求和"}));
  EXPECT_EQ(wrap("", 10), (Lines{""}));
  EXPECT_EQ(wrap("exactly ten", 11), (Lines{"exactly ten"}));
  EXPECT_EQ(wrap("an unbreakablelongword here", 8), (Lines{"an", "unbreakablelongword", "here"}));
  const std::string text = "环形 all-reduce 每个 rank 发送 2(N-1)/N 倍的数据量，与 rank 数几乎无关";
  std::string joined;
  for (const std::string& line : wrap(text, 20)) {
    EXPECT_LE(display_width(line), 20) << line;
    joined += line;
  }
  const auto without_spaces = [](std::string s) {
    std::erase(s, ' ');
    return s;
  };
  EXPECT_EQ(without_spaces(joined), without_spaces(text)) << "nothing is lost";
}

RANK_TEST(Units, ParsesBytes) {
  EXPECT_EQ(parse_bytes("80GB"), 80'000'000'000);
  EXPECT_EQ(parse_bytes("1.5 GiB"), 1'610'612'736);
  EXPECT_EQ(parse_bytes("4096"), 4096);
  EXPECT_EQ(parse_bytes("7B"), 7);
  EXPECT_EQ(parse_bytes("512MiB"), 536'870'912);
  EXPECT_EQ(parse_bytes("2 TB"), 2'000'000'000'000);
  // 1.001 * 1e9 is a hair below a whole number in binary.
  int wrong = 0;
  for (int i = 1; i < 5000; ++i) {
    wrong +=
        parse_bytes(fmt::format("{}.{:03}GB", i / 1000, i % 1000)) != i * std::int64_t{1'000'000};
  }
  EXPECT_EQ(wrong, 0) << "of 4999";
  for (const char* bad : {"", "GB", "-5GB", "0", "0.4", "80gb", "80 G", "8 0GB", "inf", "nan",
                          "1e30", "12xyz", "80GBs", "--3", "0x10"}) {
    const std::string said = message_of<UsageError>([&] { parse_bytes(bad); });
    EXPECT_TRUE(has(said, fmt::format("'{}' is no amount", bad)) && has(said, "--memory 80GB"))
        << said;
  }
}

RANK_TEST(Units, ShowsBytes) {
  EXPECT_EQ(show_bytes(0), "0 B");
  EXPECT_EQ(show_bytes(999), "999 B");
  EXPECT_EQ(show_bytes(1536), "1.536 KB");
  EXPECT_EQ(show_bytes(14e9), "14 GB");
  EXPECT_EQ(show_bytes(31.4e9), "31.4 GB");
  EXPECT_EQ(show_bytes(16e12), "16 TB");
  EXPECT_EQ(show_bytes(-2500), "-2.5 KB");
}

std::vector<Claim> three_claims() {
  const auto claim = [](const std::string& id) {
    return Claim{id,         "ch01", "TRUE", "said " + id, "说 " + id, "right " + id,
                 "对 " + id, "1.1",  "ch01"};
  };
  return {claim("C01.1"), claim("C01.2"), claim("C01.10")};
}

RANK_TEST(Claims, HoldOnlyWhatIsEqual) {
  const auto holds = [](double expected, double measured) {
    ClaimRows rows(three_claims());
    rows.equal("C01.1", expected, measured);
    return rows.all_hold();
  };
  EXPECT_TRUE(holds(0, 0));
  EXPECT_TRUE(holds(31.4, 31.4));
  EXPECT_TRUE(holds(-1e12, -1e12 * (1 + 1e-10)));
  EXPECT_FALSE(holds(1e6, 1e6 + 1));
  EXPECT_FALSE(holds(0, 1e-300));
  EXPECT_FALSE(holds(nan_d, nan_d));
  EXPECT_FALSE(holds(1, nan_d));
  EXPECT_FALSE(holds(nan_d, 1));
  EXPECT_FALSE(holds(infinity, 5)) << "an infinite expectation has an infinite tolerance";
  EXPECT_FALSE(holds(5, infinity));
}

RANK_TEST(Claims, OneMismatchIsEnough) {
  ClaimRows rows(three_claims());
  EXPECT_TRUE(rows.all_hold());
  rows.holds("C01.1", true, "seen");
  rows.not_here("C01.2", "needs 4 ranks");
  EXPECT_TRUE(rows.all_hold());
  EXPECT_TRUE(rows.shows("C01.1"));
  EXPECT_FALSE(rows.shows("C01.2"));
  EXPECT_FALSE(rows.shows("C01.10"));
  rows.holds("C01.10", false, "the contrary");
  rows.equal("C01.1", 1, 1);
  EXPECT_FALSE(rows.all_hold());
  EXPECT_TRUE(rows.shows("C01.10"));
  const std::string said = message_of<Failure>([&] { rows.holds("C99.9", true, ""); });
  EXPECT_TRUE(has(said, "C99.9")) << said;
}

RANK_TEST(Claims, PrintsRowsInTheOrderOfTheNotes) {
  ClaimRows rows(three_claims());
  rows.not_here("C01.10", "needs 4 ranks");
  rows.equal("C01.2", 8, 9, "bytes", "one too many");
  rows.equal("C01.1", 8, 8, "bytes");
  const std::string english = rows.text("en");
  EXPECT_EQ(english,
            "  C01.1     notes: said C01.1  [TRUE]\n"
            "            right: right C01.1\n"
            "    ok      measured: 8 bytes (expected 8)\n"
            "  C01.2     notes: said C01.2  [TRUE]\n"
            "            right: right C01.2\n"
            "   MISMATCH measured: 9 bytes (expected 8); one too many\n"
            "  C01.10    notes: said C01.10  [TRUE]\n"
            "            right: right C01.10\n"
            "    -       not in this run: needs 4 ranks\n");
  const std::string chinese = rows.text("zh");
  EXPECT_TRUE(has(chinese, "笔记：说 C01.2")) << chinese;
  EXPECT_TRUE(has(chinese, "正确：对 C01.2")) << chinese;
  EXPECT_TRUE(has(chinese, "    不符    实测：9 bytes")) << chinese;
  EXPECT_FALSE(has(chinese, "said")) << chinese;
}

RANK_TEST(Claims, LoadOrNameTheFile) {
  const TemporaryFile good(R"([{"id": "C01.1", "chapter": "ch01", "verdict": "WRONG", "claim": "a",
      "claim_zh": "甲", "right": "b", "right_zh": "乙", "anchor": "1.1", "shown_in": "doc"}])");
  const std::vector<Claim> claims = load_claims(good.path);
  ASSERT_EQ(claims.size(), 1u);
  EXPECT_EQ(claims[0].id + claims[0].chapter + claims[0].verdict + claims[0].claim,
            "C01.1ch01WRONGa");
  EXPECT_EQ(claims[0].claim_zh + claims[0].right + claims[0].right_zh + claims[0].anchor,
            "甲b乙1.1");
  EXPECT_EQ(claims[0].shown_in, "doc");
  const auto said = [](const std::filesystem::path& file) {
    return message_of<Failure>([&] { load_claims(file); });
  };
  EXPECT_TRUE(has(said("/no/such/claims.json"), "/no/such/claims.json"));
  for (const char* broken : {"", "[{\"id\": \"C01.1\"}]", "[{", "{\"id\": 3}"}) {
    const TemporaryFile file(broken);
    EXPECT_TRUE(has(said(file.path), file.path.string())) << broken << ": " << said(file.path);
  }
}

// The list of this repository: complete, in both languages, and all of it in docs/claims.md.
RANK_TEST(Claims, OfTheNotesAreAllThere) {
  const auto docs = source_folder() / "docs";
  const std::vector<Claim> claims = load_claims(docs / "claims.json");
  std::ifstream file(docs / "claims.md");
  const std::string page((std::istreambuf_iterator<char>(file)), {});
  const auto cell = [](std::string text) {  // as a table of Markdown holds it
    for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
      text.insert(at, 1, '\\');
    return text;
  };
  std::set<std::string> ids;
  int only_here = 0;
  for (const Claim& claim : claims) {
    EXPECT_TRUE(ids.insert(claim.id).second) << claim.id << " twice";
    only_here += claim.shown_in == "doc" ? 1 : 0;
    for (const std::string& text : {"| " + claim.id + " |", cell(claim.claim), cell(claim.claim_zh),
                                    cell(claim.right), cell(claim.right_zh)}) {
      EXPECT_TRUE(!text.empty() && has(page, text)) << claim.id << ": " << text;
    }
  }
  EXPECT_EQ(claims.size(), 151u);
  EXPECT_EQ(only_here, 9);
}

}  // namespace
}  // namespace fivecuts
