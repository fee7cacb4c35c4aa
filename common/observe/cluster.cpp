#include "common/observe/cluster.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "common/support/error.hpp"

namespace fivecuts {
namespace {

using nlohmann::json;

/// Reads the numbers of one file; a complaint names the file and the place in it.
class Reader {
 public:
  Reader(std::string file, const json& document) : file_(std::move(file)), document_(document) {}

  [[noreturn]] void complain(const std::string& what) const {
    throw UsageError(fmt::format(
        "cluster file {}: {}; see the ones in common/observe/clusters, as in --cluster h100", file_,
        what));
  }

  /// The number at `path` ("/intra_node/latency"), which must be in [least, most], have this unit
  /// and name its source.
  double number(const std::string& path, const char* unit, double least, double most = 1e30) const {
    const json::json_pointer at(path);
    if (!document_.contains(at)) complain(fmt::format("{} is missing", path));
    const json& entry = document_.at(at);
    nothing_but(entry, {"value", "unit", "source"}, path);
    if (!entry.contains("value") || !entry.at("value").is_number()) {
      complain(fmt::format("{} has no number as its \"value\"", path));
    }
    if (!entry.contains("unit") || entry.at("unit") != unit) {
      complain(fmt::format("{} is not said to be in \"unit\": \"{}\"", path, unit));
    }
    check_source(entry, path);
    const auto value = entry.at("value").get<double>();
    if (!(value >= least && value <= most)) {
      complain(fmt::format("{} is {:g}, and must be from {:g} to {:g}", path, value, least, most));
    }
    return value;
  }

  std::int64_t whole_number(const std::string& path, const char* unit, double most) const {
    const double value = number(path, unit, 0, most);
    if (value != std::floor(value)) {
      complain(fmt::format("{} is {:g}, and must be a whole number", path, value));
    }
    return static_cast<std::int64_t>(value);
  }

  Link link(const std::string& path) const {
    const Link link{number(path + "/latency", "s", 0, 1e3), number(path + "/bandwidth", "B/s", 1)};
    nothing_but(document_.at(json::json_pointer(path)), {"latency", "bandwidth"}, path);
    return link;
  }

  std::vector<std::pair<double, double>> curve(const std::string& path) const {
    const json::json_pointer at(path);
    if (!document_.contains(at)) complain(fmt::format("{} is missing", path));
    const json& entry = document_.at(at);
    nothing_but(entry, {"points", "source"}, path);
    check_source(entry, path);
    if (!entry.contains("points") || !entry.at("points").is_array() || entry.at("points").empty()) {
      complain(fmt::format("{} has no \"points\"", path));
    }
    std::vector<std::pair<double, double>> points;
    for (const json& point : entry.at("points")) {
      const bool pair =
          point.is_array() && point.size() == 2 && point[0].is_number() && point[1].is_number();
      if (!pair) complain(fmt::format("{}: a point is [dimension, share]", path));
      points.emplace_back(point[0].get<double>(), point[1].get<double>());
      const auto [dimension, share] = points.back();
      const bool ascends = points.size() == 1 || dimension > points[points.size() - 2].first;
      if (!(dimension >= 1 && dimension <= 1e18 && share >= 1e-9 && share <= 1 && ascends)) {
        complain(fmt::format("{}: dimensions ascend from 1, shares are above 0 and up to 1", path));
      }
    }
    return points;
  }

  /// `where`: the place of `object`; empty for the whole file.
  void nothing_but(const json& object, const std::set<std::string>& known,
                   const std::string& where) const {
    const std::string place = where.empty() ? "the file" : where;
    if (!object.is_object()) complain(fmt::format("{} is no JSON object", place));
    for (const auto& [key, value] : object.items()) {
      if (!known.contains(key)) {
        complain(
            fmt::format("{} has '{}', and can have only {}", place, key, fmt::join(known, ", ")));
      }
    }
  }

 private:
  void check_source(const json& entry, const std::string& path) const {
    if (!entry.contains("source") || !entry.at("source").is_string() ||
        entry.at("source").get<std::string>().empty()) {
      complain(fmt::format("{} does not name its \"source\"", path));
    }
  }

  std::string file_;
  const json& document_;
};

std::filesystem::path folder() { return FIVECUTS_SOURCE_DIR "/common/observe/clusters"; }

json parse(const std::filesystem::path& file) {
  std::ifstream in(file);
  try {
    return json::parse(in);
  } catch (const json::exception& error) {
    throw UsageError(
        fmt::format("cluster file {}: it is no JSON ({}); see the ones in common/observe/clusters, "
                    "as in --cluster h100",
                    file.string(), error.what()));
  }
}

Cluster read(const std::string& name, const std::filesystem::path& file) {
  const json document = parse(file);
  const Reader reader(file.string(), document);
  Cluster cluster;
  cluster.name = name;
  if (document.is_object() && document.contains("slots")) {
    reader.nothing_but(document, {"about", "slots"}, "");
    reader.number("/slots", "slot a span", 1, 1);
    cluster.unit = true;
    return cluster;
  }
  reader.nothing_but(document,
                     {"about", "peak_f32", "peak_bf16", "memory_bandwidth", "overhead", "memory",
                      "ranks_per_node", "intra_node", "inter_node", "product_efficiency"},
                     "");
  cluster.peak_f32 = reader.number("/peak_f32", "FLOP/s", 1);
  cluster.peak_bf16 = reader.number("/peak_bf16", "FLOP/s", 1);
  cluster.memory_bandwidth = reader.number("/memory_bandwidth", "B/s", 1);
  cluster.overhead = reader.number("/overhead", "s", 0, 1e3);
  cluster.memory = static_cast<std::int64_t>(reader.number("/memory", "B", 1, 9e18));
  cluster.ranks_per_node = reader.whole_number("/ranks_per_node", "ranks", 1e9);
  cluster.intra_node = reader.link("/intra_node");
  cluster.inter_node = reader.link("/inter_node");
  cluster.product_efficiency = reader.curve("/product_efficiency");
  return cluster;
}

}  // namespace

double Cluster::efficiency(std::int64_t thinnest) const {
  const auto x = static_cast<double>(thinnest);
  const auto& curve = product_efficiency;
  if (curve.empty()) return 1;
  const auto above = std::lower_bound(
      curve.begin(), curve.end(), x, [](const auto& point, double at) { return point.first < at; });
  if (above == curve.begin()) return curve.front().second;
  if (above == curve.end()) return curve.back().second;
  const auto& [x0, y0] = *(above - 1);
  const auto& [x1, y1] = *above;
  return y0 + (y1 - y0) * (x - x0) / (x1 - x0);
}

std::vector<std::string> cluster_names() {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder(), none)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Cluster load_cluster(const std::string& name) {
  const auto names = cluster_names();
  if (std::find(names.begin(), names.end(), name) != names.end())
    return read(name, folder() / (name + ".json"));
  std::error_code none;
  if (std::filesystem::is_regular_file(name, none))
    return read(std::filesystem::path(name).stem().string(), name);
  throw UsageError(fmt::format(
      "there is no cluster '{}': it is neither a file nor one of {}; try --cluster h100", name,
      fmt::join(names, ", ")));
}

}  // namespace fivecuts
