// Chrome traces, and the files that figures go to.
#include <sys/resource.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <set>

#include "common/comm/output.hpp"
#include "common/observe/trace.hpp"
#include "common/tests/figure_checks.hpp"
#include "common/tests/helpers.hpp"

namespace fivecuts {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Thread = std::pair<std::int64_t, std::int64_t>;

/// One thing that a viewer would not understand in `event`, "" if there is none.
std::string fault_of(const json& event) {
  if (!event.is_object()) return "no object";
  for (const char* key : {"name", "ph"}) {
    if (!event.contains(key) || !event[key].is_string()) return "no string " + std::string(key);
  }
  for (const char* key : {"pid", "tid"}) {
    if (!event.contains(key) || !event[key].is_number_integer()) return "no " + std::string(key);
  }
  if (!event.contains("args") || !event["args"].is_object()) return "no args";
  if (event["ph"] == "X") {
    for (const char* key : {"ts", "dur"}) {
      if (!event.contains(key) || !event[key].is_number() || !(event[key] >= 0))
        return "no " + std::string(key);
    }
    return event.contains("cat") && event["cat"].is_string() ? "" : "no cat";
  }
  if (event["ph"] != "M") return "unknown phase";
  const std::string name = event["name"];
  const bool sorts = name == "process_sort_index" || name == "thread_sort_index";
  if (!sorts && name != "process_name" && name != "thread_name") return "unknown metadata " + name;
  const json value = event["args"].value(sorts ? "sort_index" : "name", json());
  return (sorts ? value.is_number_integer() : value.is_string()) ? "" : "no value of " + name;
}

/// What is wrong with a trace: format, overlaps in a thread, threads without a name or names
/// without a thread.
std::vector<std::string> trace_faults(const std::string& text) {
  const json trace = json::parse(text, nullptr, false);
  if (!trace.is_object() || !trace.contains("traceEvents") || !trace["traceEvents"].is_array())
    return {"no trace"};
  std::vector<std::string> faults;
  if (trace.value("displayTimeUnit", "") != "ms" && trace.value("displayTimeUnit", "") != "ns")
    faults.push_back("no time unit");
  std::map<Thread, std::vector<std::pair<std::int64_t, std::int64_t>>> spans;  // nanoseconds
  std::set<Thread> named;
  std::set<std::int64_t> processes;
  for (const json& event : trace["traceEvents"]) {
    if (const std::string fault = fault_of(event); !fault.empty()) {
      faults.push_back(fault + " in " + event.dump());
      continue;
    }
    const Thread thread(event["pid"], event["tid"]);
    if (event["ph"] == "X") {
      const std::int64_t start = std::llround(event["ts"].get<double>() * 1000);
      const std::int64_t length = std::llround(event["dur"].get<double>() * 1000);
      spans[thread].push_back({start, start + length});
    } else if (event["name"] == "process_name") {
      if (!processes.insert(thread.first).second) faults.push_back("a process with two names");
    } else if (event["name"] == "thread_name") {
      if (!named.insert(thread).second) faults.push_back("a thread with two names");
    }
  }
  for (auto& [thread, times] : spans) {
    if (!named.contains(thread)) faults.push_back("a thread without a name");
    std::sort(times.begin(), times.end());
    for (std::size_t i = 1; i < times.size(); ++i) {
      if (times[i].first < times[i - 1].second) faults.push_back("an overlap");
    }
  }
  for (const Thread& thread : named) {
    if (!spans.contains(thread)) faults.push_back("a name without a thread");
    if (!processes.contains(thread.first)) faults.push_back("a process without a name");
  }
  return faults;
}

ONE_RANK_TEST(FigureTrace, IsWhatAViewerReads) {
  // Ends and starts that are the same number must stay so when they are rounded.
  Timeline odd{"<&\"> 图", {{}, {}}};
  for (int i = 0; i < 1000; ++i)
    odd.ranks[1].push_back(work("name \xff", 1 + i * 1.23656789e-7, 1 + (i + 1) * 1.23656789e-7));
  const Timeline empty{"empty", {}}, zero{"zero", {{work("a", 1, 1), work("b", 1, 1)}}};
  for (const std::vector<Timeline>& panels : std::vector<std::vector<Timeline>>{
           {}, {empty}, {zero}, {odd}, {iteration(1)}, {iteration(64), empty, iteration(3)}}) {
    const std::string trace = chrome_trace(panels);
    for (const std::string& fault : trace_faults(trace)) ADD_FAILURE() << fault;
    EXPECT_EQ(trace, chrome_trace(panels));
  }
}

ONE_RANK_TEST(FigureTrace, HoldsEveryEventOfEveryRank) {
  const std::vector<Timeline> panels = {iteration(64), iteration(2, 2, "second")};
  const json events = json::parse(chrome_trace(panels))["traceEvents"];
  const auto count = [&](auto want) { return std::count_if(events.begin(), events.end(), want); };
  EXPECT_EQ(count([](const json& e) { return e["ph"] == "X"; }), (64 + 2) * 7);
  EXPECT_EQ(count([](const json& e) {
              return e["name"] == "process_name" && e["pid"] == 2 && e["args"]["name"] == "second";
            }),
            1);
  EXPECT_EQ(count([](const json& e) {
              return e["name"] == "thread_name" && e["tid"] == 127 &&
                     e["args"]["name"] == "rank 63 comm";
            }),
            1);
  // Rank 0 waits 70 µs for rank 1, then reduces for 50.
  EXPECT_EQ(count([](const json& e) {
              return e["pid"] == 2 && e["tid"] == 1 && e["name"] == "all_reduce" &&
                     e["ts"] == 70.0 && e["dur"] == 120.0 && e["cat"] == "collective" &&
                     e["args"]["bytes"] == 1500 && e["args"]["communicator"] == "dp" &&
                     std::abs(e["args"]["waited_us"].get<double>() - 70) < 1e-9;
            }),
            1);
}

ONE_RANK_TEST(FigureTrace, CountsFromTheFirstEvent) {
  const Timeline late{"late", {{work("a", 7, 7.5)}}};
  EXPECT_EQ(json::parse(chrome_trace({&late, 1}))["traceEvents"].back()["ts"], 0.0);
  const Timeline ages{"ages", {{work("a", 0, 1e10)}}}, no_time{"", {{work("a", nan_d, 1)}}};
  EXPECT_THROW(chrome_trace({&ages, 1}), Failure);
  EXPECT_THROW(chrome_trace({&no_time, 1}), Failure);
}

ONE_RANK_TEST(FigureTrace, ValidatorFindsWhatIsBroken) {
  const std::vector<Timeline> panels = {iteration(2)};
  const json good = json::parse(chrome_trace(panels));
  ASSERT_TRUE(trace_faults(good.dump()).empty());
  const auto broken = [&](auto change) {
    json bad = good;
    change(bad, bad["traceEvents"]);
    return !trace_faults(bad.dump()).empty();
  };
  const auto at = [](json& events, const std::string& name) -> json& {
    return *std::find_if(events.begin(), events.end(),
                         [&](const json& e) { return e["name"] == name; });
  };
  for (const char* key : {"name", "ph", "pid", "tid", "ts", "dur", "cat", "args"}) {
    EXPECT_TRUE(broken([&](json&, json& events) { at(events, "backward").erase(key); })) << key;
    EXPECT_TRUE(broken([&](json&, json& events) { at(events, "backward")[key] = nullptr; })) << key;
  }
  EXPECT_TRUE(broken([&](json&, json& events) { at(events, "backward")["dur"] = -1; }));
  EXPECT_TRUE(broken([&](json&, json& events) { at(events, "backward")["dur"] = 1e6; }))
      << "overlap";
  EXPECT_TRUE(broken([&](json&, json& events) { at(events, "backward")["ts"] = "40"; }));
  EXPECT_TRUE(broken([&](json&, json& events) { at(events, "backward")["ph"] = "Q"; }));
  EXPECT_TRUE(broken([&](json&, json& events) { at(events, "backward")["tid"] = 99; }));
  EXPECT_TRUE(broken([&](json&, json& events) { at(events, "backward")["pid"] = 99; }));
  EXPECT_TRUE(broken([&](json&, json& events) { at(events, "thread_name")["tid"] = 99; }));
  EXPECT_TRUE(broken([&](json&, json& events) { at(events, "process_name")["pid"] = 99; }));
  EXPECT_TRUE(broken([&](json&, json& events) { events.push_back(at(events, "process_name")); }));
  EXPECT_TRUE(
      broken([&](json&, json& events) { at(events, "thread_name")["args"] = json::object(); }));
  EXPECT_TRUE(broken([&](json&, json& events) { at(events, "thread_name")["name"] = "thread"; }));
  EXPECT_TRUE(broken([](json& trace, json&) { trace.erase("displayTimeUnit"); }));
  EXPECT_TRUE(broken([](json& trace, json&) { trace.erase("traceEvents"); }));
  EXPECT_FALSE(trace_faults("{\"traceEvents\": [").empty());
}

/// A folder of this process alone, gone with the object.
struct Folder {
  Folder() : path(fs::temp_directory_path() / fmt::format("fivecuts_figures_{}", getpid())) {
    fs::create_directories(path);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path); }
  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(path)) names.insert(entry.path().filename());
    return names;
  }
  fs::path path;
};

std::string content_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string refusal(const fs::path& path) {
  return message_of<UsageError>([&] { OutputFile{path}; });
}

using Files = std::set<std::string>;

ONE_RANK_TEST(FigureFile, AppearsWhenItIsWritten) {
  const Folder folder;
  const OutputFile file(folder.path / "图 1.svg");
  EXPECT_EQ(folder.files(), Files{});
  const std::string content("a\0b\r\n图", 8);
  file.write(content);
  EXPECT_EQ(content_of(folder.path / "图 1.svg"), content);
  file.write("second");
  EXPECT_EQ(content_of(folder.path / "图 1.svg"), "second");
  EXPECT_EQ(folder.files(), Files{"图 1.svg"});
}

ONE_RANK_TEST(FigureFile, LeavesAnExistingOneUntilThen) {
  const Folder folder;
  std::ofstream(folder.path / "old.svg") << "old";
  fs::create_symlink("old.svg", folder.path / "link.svg");
  const OutputFile file(folder.path / "link.svg");
  EXPECT_EQ(content_of(folder.path / "old.svg"), "old");
  file.write("new");
  EXPECT_EQ(content_of(folder.path / "old.svg"), "new");
  EXPECT_TRUE(fs::is_symlink(folder.path / "link.svg"));
  EXPECT_EQ(folder.files(), (Files{"link.svg", "old.svg"}));
}

ONE_RANK_TEST(FigureFile, IsTheSameHoweverItIsSpelt) {
  const Folder folder;
  fs::create_directory(folder.path / "sub");
  fs::create_directory_symlink("sub", folder.path / "link");
  std::ofstream(folder.path / "old.svg") << "old";
  fs::create_symlink("old.svg", folder.path / "link.svg");
  EXPECT_TRUE(same_file("a.svg", "./a.svg"));
  EXPECT_TRUE(same_file("a.svg", fs::current_path() / "a.svg"));
  EXPECT_TRUE(same_file(folder.path / "old.svg", folder.path / "link.svg"));
  EXPECT_TRUE(same_file(folder.path / "sub/a.svg", folder.path / "link/a.svg"));
  EXPECT_TRUE(same_file(folder.path / "sub/../a.svg", folder.path / "a.svg"));
  EXPECT_TRUE(same_file(folder.path / "no/../a.svg", folder.path / "a.svg"));
  fs::create_directories(folder.path / "elsewhere/deep");
  fs::create_directory_symlink("elsewhere/deep", folder.path / "deep");
  EXPECT_TRUE(same_file(folder.path / "deep/../a.svg", folder.path / "elsewhere/a.svg"));
  EXPECT_FALSE(same_file("a.svg", "b.svg"));
  EXPECT_FALSE(same_file(folder.path / "a.svg", folder.path / "sub/a.svg"));
}

ONE_RANK_TEST(FigureFile, IsRefusedWithASentence) {
  const Folder folder;
  const std::string missing = (folder.path / "no").string();
  EXPECT_EQ(refusal(missing + "/y.svg"),
            fmt::format("cannot write the figure to '{0}/y.svg': the folder '{0}' does not exist; "
                        "give another path, as in --figure timeline.svg",
                        missing));
  EXPECT_TRUE(has(refusal(""), "the name is empty")) << refusal("");
  EXPECT_TRUE(has(refusal(folder.path), "it is a folder")) << refusal(folder.path);
  EXPECT_TRUE(has(refusal(folder.path / ""), "it is a folder"));
  EXPECT_TRUE(has(refusal("/dev/null"), "it is no plain file")) << refusal("/dev/null");
  EXPECT_TRUE(has(refusal(folder.path / std::string(300, 'x')), "too long"));
  std::ofstream(folder.path / "file") << "x";
  EXPECT_TRUE(has(refusal(folder.path / "file" / "y.svg"), "does not exist"));
  EXPECT_TRUE(has(
      message_of<UsageError>([] { OutputFile("", "trace", "--trace t.json"); }),
      "cannot write the trace to '': the name is empty; give another path, as in --trace t.json"));
  if (geteuid() != 0) {  // root may write everywhere
    fs::permissions(folder.path, fs::perms::owner_read | fs::perms::owner_exec);
    EXPECT_TRUE(has(refusal(folder.path / "y.svg"), "ermission denied"));
    fs::permissions(folder.path, fs::perms::owner_all);
  } else if (fs::exists("/proc/self")) {
    EXPECT_TRUE(has(refusal("/proc/y.svg"), "cannot write the figure to '/proc/y.svg'"));
  }
  EXPECT_EQ(folder.files(), Files{"file"});
  EXPECT_EQ(content_of(folder.path / "file"), "x");
}

ONE_RANK_TEST(FigureFile, IsNeverHalfWritten) {
  const Folder folder;
  const OutputFile file(folder.path / "y.svg");
  file.write("old");
  // As on a full disk: no file may grow beyond 4096 bytes.
  struct rlimit before {};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit low = before;
  low.rlim_cur = 4096;
  setrlimit(RLIMIT_FSIZE, &low);
  const std::string said = message_of<Failure>([&] { file.write(std::string(100000, 'x')); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(has(said, "cannot write " + (folder.path / "y.svg").string() + ": File too large"))
      << said;
  EXPECT_EQ(content_of(folder.path / "y.svg"), "old");
  EXPECT_EQ(folder.files(), Files{"y.svg"});

  fs::remove(folder.path / "y.svg");
  fs::create_directory(folder.path / "y.svg");
  EXPECT_TRUE(has(message_of<Failure>([&] { file.write("x"); }), "cannot write"));
  EXPECT_EQ(folder.files(), Files{"y.svg"}) << "no part of a file";
  fs::remove_all(folder.path);
  EXPECT_TRUE(has(message_of<Failure>([&] { file.write("x"); }), "No such file"));
}

ONE_RANK_TEST(FigureFiles, APathThatCannotBeWrittenIsRefusedOnEveryRank) {
  const Context& context = test_context();
  const auto refusal = [&](const char* path) {
    return message_of<UsageError>([&] { output_file(context, path, "map", "--figure map.svg"); });
  };
  EXPECT_FALSE(output_file(context, {}, "map", "--figure map.svg").has_value());
  EXPECT_TRUE(has(refusal("/there/is/no/such/folder/map.svg"),
                  "cannot write the map to '/there/is/no/such/folder/map.svg': the folder"));
  EXPECT_TRUE(has(refusal(""), "the name is empty; give another path, as in --figure map.svg"));
  EXPECT_TRUE(has(refusal("/"), "it is a folder; give another path, as in --figure map.svg"));
}

}  // namespace
}  // namespace fivecuts
