// Cluster profiles: the ones that come with the project, and every way in which a file can be
// wrong.
#include <nlohmann/json.hpp>

#include "common/observe/cluster.hpp"
#include "common/support/main.hpp"
#include "common/tests/helpers.hpp"

namespace fivecuts {
namespace {

using nlohmann::json;
using Pointer = json::json_pointer;

json shipped(const std::string& name) {
  std::ifstream in(source_folder() / "common/observe/clusters" / (name + ".json"));
  return json::parse(in);
}

/// Where the numbers of a profile stand, "/intra_node/latency" and so on.
std::vector<std::string> numbers_of(const json& profile) {
  std::vector<std::string> paths;
  for (const auto& [key, value] : profile.items()) {
    if (!value.is_object() || key == "product_efficiency") continue;
    if (value.contains("value")) paths.push_back("/" + key);
    for (const auto& [inner, entry] : value.items()) {
      if (entry.is_object()) paths.push_back("/" + key + "/" + inner);
    }
  }
  return paths;
}

/// The refusal of a file with this content; checks that it is one sentence that names the file.
std::string refusal(const std::string& content) {
  const TemporaryFile file(content);
  const std::string said = message_of<UsageError>([&] { load_cluster(file.path.string()); });
  EXPECT_TRUE(has(said, file.path.string())) << said << "\n" << content;
  EXPECT_FALSE(has(said, "\n")) << said;
  return said;
}

void expect_refused(const json& profile, const std::string& words) {
  const std::string said = refusal(profile.dump());
  EXPECT_TRUE(has(said, words)) << "not '" << words << "' but: " << said;
}

json with(json profile, const std::string& path, const json& value) {
  profile[Pointer(path)] = value;
  return profile;
}
json without(json profile, const std::string& path) {
  const Pointer at(path);
  profile[at.parent_pointer()].erase(at.back());
  return profile;
}

ONE_RANK_TEST(ClusterProfiles, EachHasAUnitAndASourceForEachNumber) {
  const auto names = cluster_names();
  EXPECT_GE(names.size(), 5u);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    EXPECT_EQ(load_cluster(name).name, name);
    const json profile = shipped(name);
    EXPECT_GT(profile.at("about").get<std::string>().size(), 10u);
    for (const std::string& path : numbers_of(profile)) {
      const json& number = profile.at(Pointer(path));
      EXPECT_FALSE(number.at("unit").get<std::string>().empty()) << path;
      EXPECT_GE(number.at("source").get<std::string>().size(), 10u) << path;
    }
  }
}

ONE_RANK_TEST(ClusterProfiles, CurvesAreShares) {
  for (const std::string& name : cluster_names()) {
    const Cluster cluster = load_cluster(name);
    if (cluster.unit) continue;
    const auto& curve = cluster.product_efficiency;
    ASSERT_FALSE(curve.empty()) << name;
    for (std::size_t k = 0; k < curve.size(); ++k) {
      EXPECT_TRUE(curve[k].second > 0 && curve[k].second <= 1) << name << ", point " << k;
      EXPECT_TRUE(k == 0 || curve[k].first > curve[k - 1].first) << name << ", point " << k;
    }
    EXPECT_LT(cluster.efficiency(1), cluster.efficiency(128)) << name << ": thin is slow";
    EXPECT_GE(cluster.inter_node.latency, cluster.intra_node.latency) << name;
    EXPECT_LE(cluster.inter_node.bandwidth, cluster.intra_node.bandwidth) << name;
  }
}

ONE_RANK_TEST(ClusterProfiles, TheLaptopWasMeasuredAt11Widths) {
  const Cluster laptop = load_cluster("laptop");
  ASSERT_EQ(laptop.product_efficiency.size(), 11u);
  double rows = 1, best = 0;
  for (const auto& [dimension, share] : laptop.product_efficiency) {
    EXPECT_EQ(dimension, rows);
    best = std::max(best, share);
    rows *= 2;
  }
  EXPECT_EQ(best, 1) << "the peak is the best of them";
}

ONE_RANK_TEST(ClusterFiles, EveryNumberCanBeWrong) {
  const json good = shipped("h100");
  const auto paths = numbers_of(good);
  EXPECT_EQ(paths.size(), 10u);
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    expect_refused(without(good, path), path + " is missing");
    expect_refused(with(good, path, 5), path + " is no JSON object");
    expect_refused(with(good, path, nullptr), path + " is no JSON object");
    expect_refused(with(good, path + "/valeu", 5), path + " has 'valeu'");
    expect_refused(without(good, path + "/value"), path + " has no number");
    for (const json& value : {json("5"), json(true), json(nullptr), json::array({5})}) {
      expect_refused(with(good, path + "/value", value), path + " has no number");
    }
    for (const json& value : {json(-1), json(-1e-30), json(1e31), json(1e300)}) {
      expect_refused(with(good, path + "/value", value), path + " is ");
    }
    expect_refused(without(good, path + "/unit"), path + " is not said to be in");
    expect_refused(with(good, path + "/unit", "GB/s"), path + " is not said to be in");
    expect_refused(without(good, path + "/source"), path + " does not name its \"source\"");
    expect_refused(with(good, path + "/source", ""), path + " does not name its \"source\"");
    expect_refused(with(good, path + "/source", 7), path + " does not name its \"source\"");
  }
}

ONE_RANK_TEST(ClusterFiles, WhatNothingCanBeDividedBy) {
  const json good = shipped("h100");
  for (const char* path : {"/peak_f32", "/peak_bf16", "/memory_bandwidth", "/memory",
                           "/intra_node/bandwidth", "/inter_node/bandwidth"}) {
    expect_refused(with(good, std::string(path) + "/value", 0), fmt::format("{} is 0", path));
  }
  expect_refused(with(good, "/ranks_per_node/value", 2.5), "must be a whole number");
}

ONE_RANK_TEST(ClusterFiles, Curves) {
  const json good = shipped("h100");
  const std::string path = "/product_efficiency";
  expect_refused(without(good, path), path + " is missing");
  expect_refused(with(good, path, 5), path + " is no JSON object");
  expect_refused(without(good, path + "/source"), path + " does not name its \"source\"");
  expect_refused(with(good, path + "/smooth", true), path + " has 'smooth'");
  for (const char* points : {"[]", "{}", "5", "null", "\"[1, 1]\""}) {
    expect_refused(with(good, path + "/points", json::parse(points)), path + " has no \"points\"");
  }
  expect_refused(without(good, path + "/points"), path + " has no \"points\"");
  for (const char* points : {"[5]", "[[1]]", "[[1, 0.5, 2]]", "[[1, \"0.5\"]]", "[[null, 1]]"}) {
    expect_refused(with(good, path + "/points", json::parse(points)), "a point is [dimension");
  }
  for (const char* points :
       {"[[2, 0.5], [1, 1]]", "[[1, 0.5], [1, 1]]", "[[0, 0.5]]", "[[-1, 1]]", "[[1, 0]]",
        "[[1, -0.5]]", "[[1, 1.01]]", "[[1, 1e300]]", "[[1e300, 1]]", "[[1, 1e-300]]"}) {
    expect_refused(with(good, path + "/points", json::parse(points)), "dimensions ascend from 1");
  }
}

ONE_RANK_TEST(ClusterFiles, WholeFiles) {
  for (const char* text : {"", " ", "{", "peak_f32 = 5", "{\"peak_f32\": 1e400}"}) {
    EXPECT_TRUE(has(refusal(text), "it is no JSON")) << text;
  }
  for (const char* text : {"[]", "5", "null", "\"h100\""}) {
    EXPECT_TRUE(has(refusal(text), "the file is no JSON object")) << text;
  }
  EXPECT_TRUE(has(refusal("{}"), "/peak_f32 is missing"));
  const json good = shipped("h100");
  expect_refused(with(good, "/colour", 5), "the file has 'colour'");
  for (const char* link : {"/intra_node", "/inter_node"}) {
    expect_refused(without(good, link), link);
    expect_refused(with(good, link, "fast"), link);
    expect_refused(with(good, link, json::array()), link);
    expect_refused(with(good, std::string(link) + "/jitter", 5), "has 'jitter'");
  }
}

ONE_RANK_TEST(ClusterFiles, Slots) {
  const json unit = shipped("unit");
  expect_refused(with(unit, "/peak_f32", shipped("h100").at("peak_f32")), "has 'peak_f32'");
  expect_refused(with(unit, "/slots/value", 2), "/slots is 2");
  expect_refused(with(unit, "/slots", 1), "/slots is no JSON object");
}

RANK_TEST(ClusterFiles, AGoodOneIsTaken) {  // else all of the refusals above would prove nothing
  if (!once()) return;
  const TemporaryFile file(with(shipped("h100"), "/overhead/value", 0).dump());
  const Cluster cluster = load_cluster(file.path.string());
  EXPECT_EQ(cluster.overhead, 0);
  EXPECT_EQ(cluster.name, file.path.stem().string());
  EXPECT_EQ(cluster.ranks_per_node, 8);
}

}  // namespace
}  // namespace fivecuts
