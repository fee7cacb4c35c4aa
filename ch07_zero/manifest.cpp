#include "ch07_zero/manifest.hpp"

#include <bit>
#include <nlohmann/json.hpp>

#include "ch02_data_parallel/training.hpp"
#include "ch07_zero/safe_file.hpp"
#include "ch07_zero/safetensors.hpp"

namespace fivecuts::zero_redundancy {
namespace {

using nlohmann::json;

constexpr const char* format = "five cuts, ch07";
constexpr int version = 1;

std::string hex(std::uint64_t number) { return fmt::format("{:016x}", number); }
std::uint64_t from_hex(const json& text) {
  return std::stoull(text.get<std::string>(), nullptr, 16);
}

/// FNV-1a.
std::uint64_t hash_of(const std::string& text) {
  std::uint64_t h = 0xCBF29CE484222325u;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return h;
}

/// The whole text around what it says. There is one way to write it, so that a reader compares
/// bytes.
std::string sealed(const json& says) {
  return json{{"checkpoint", says}, {"checksum", hex(hash_of(says.dump()))}}.dump(1) + "\n";
}

json json_of(const ModelShape& model) {
  json layers = json::array();
  for (const LayerShape& s : model) {
    layers.push_back({{"in", s.in},
                      {"out", s.out},
                      {"bias", s.bias},
                      {"gelu", s.gelu},
                      {"residual", s.residual}});
  }
  return layers;
}

json json_of(const Manifest& manifest, std::size_t f) {
  json pieces = json::array();
  for (const Piece& piece : manifest.files[f].pieces) {
    json one = {{"first", piece.part.first}, {"count", piece.part.count}};
    for (std::size_t s = 0; s < state_names.size(); ++s) one[state_names[s]] = hex(piece.sums[s]);
    pieces.push_back(one);
  }
  return {{"name", manifest.files[f].name}, {"bytes", bytes_of(manifest, f)}, {"layers", pieces}};
}

ModelShape model_from(const json& layers) {
  ModelShape model;
  for (const json& s : layers) {
    model.push_back({s.at("in"), s.at("out"), s.at("bias"), s.at("gelu"), s.at("residual")});
  }
  return model;
}

ShardFile file_from(const json& says) {
  ShardFile file{says.at("name"), {}};
  for (const json& layer : says.at("layers")) {
    Piece piece{{layer.at("first"), layer.at("count")}, {}};
    for (std::size_t s = 0; s < state_names.size(); ++s) {
      piece.sums[s] = from_hex(layer.at(state_names[s]));
    }
    file.pieces.push_back(piece);
  }
  return file;
}

/// A name in the folder itself, not a way out of it.
bool is_plain(const std::string& name) {
  return !name.empty() && name.find_first_of("/\\") == std::string::npos && name[0] != '.';
}

/// Every layer is there, once.
bool complete(const Manifest& manifest) {
  if (!is_plain(manifest.folder)) return false;
  for (const ShardFile& file : manifest.files) {
    if (!is_plain(file.name) || file.pieces.size() != manifest.recipe.model.size()) return false;
  }
  for (std::size_t k = 0; k < manifest.recipe.model.size(); ++k) {
    std::int64_t end = 0;
    for (const ShardFile& file : manifest.files) {
      const Part part = file.pieces[k].part;
      if (part.first != end || part.count < 0) return false;
      end += part.count;
    }
    if (end != manifest.recipe.model[k].parameters()) return false;
  }
  return true;
}

Manifest manifest_from(const json& says) {
  Manifest manifest;
  Recipe& recipe = manifest.recipe;
  recipe.model = model_from(says.at("model"));
  recipe.precision = says.at("precision") == "bf16" ? DType::bf16 : DType::f32;
  recipe.seed = says.at("seed");
  recipe.batch = says.at("batch");
  recipe.learning_rate = says.at("learning_rate");
  recipe.clip = says.at("clip");
  manifest.steps = says.at("steps");
  manifest.stage = says.at("stage");
  manifest.folder = says.at("folder");
  for (const json& file : says.at("files")) manifest.files.push_back(file_from(file));
  return manifest;
}

}  // namespace

std::string manifest_text(const Manifest& manifest) {
  const Recipe& recipe = manifest.recipe;
  json files = json::array();
  for (std::size_t f = 0; f < manifest.files.size(); ++f) files.push_back(json_of(manifest, f));
  return sealed({{"format", format},
                 {"version", version},
                 {"model", json_of(recipe.model)},
                 {"precision", data_parallel::name_of_precision(recipe.precision)},
                 {"seed", recipe.seed},
                 {"batch", recipe.batch},
                 {"learning_rate", recipe.learning_rate},
                 {"clip", recipe.clip},
                 {"steps", manifest.steps},
                 {"stage", manifest.stage},
                 {"ranks", manifest.files.size()},
                 {"folder", manifest.folder},
                 {"files", files}});
}

Manifest parse_manifest(const std::string& text, const std::filesystem::path& file) {
  const auto refuse = [&](const std::string& why) -> Manifest {
    throw FileError(
        fmt::format("'{}' is no manifest of a whole checkpoint: {}", file.string(), why));
  };
  const json all = json::parse(text, nullptr, false);
  if (!all.is_object()) return refuse("it is cut short, or damaged");
  if (!all.contains("checkpoint") || !all["checkpoint"].is_object()) {
    return refuse("another program wrote it");
  }
  const json& says = all["checkpoint"];
  if (says.value("format", json()) != format) return refuse("another program wrote it");
  if (says.value("version", json()) != version) {
    return refuse(fmt::format("this program reads version {} of the format", version));
  }
  if (sealed(says) != text) return refuse("it was changed after it was written");
  try {
    Manifest manifest = manifest_from(says);
    return complete(manifest) ? manifest : refuse("the files do not hold each layer once");
  } catch (const std::exception& error) {
    return refuse(error.what());
  }
}

std::string header_of(const Manifest& manifest, std::size_t f) {
  const ShardFile& file = manifest.files[f];
  std::vector<TensorInfo> tensors;
  std::map<std::string, std::string> metadata = {
      {"steps", std::to_string(manifest.steps)},
      {"rank", fmt::format("{} of {}", f, manifest.files.size())}};
  for (std::size_t k = 0; k < file.pieces.size(); ++k) {
    const Part part = file.pieces[k].part;
    const std::string layer = fmt::format("layers.{}", k);
    metadata[layer] = fmt::format("elements [{}, {}) of {}", part.first, part.first + part.count,
                                  manifest.recipe.model[k].parameters());
    for (const char* state : state_names) tensors.push_back({layer + "." + state, {part.count}});
  }
  return safetensors_header(tensors, metadata);
}

std::int64_t offset_of(const ShardFile& file, std::size_t k, std::size_t s) {
  constexpr std::int64_t number = sizeof(float);
  std::int64_t before = 0;
  for (std::size_t i = 0; i < k; ++i) before += file.pieces[i].part.count;
  const std::int64_t states = state_names.size(), here = static_cast<std::int64_t>(s);
  const std::int64_t own = k < file.pieces.size() ? file.pieces[k].part.count : 0;
  return number * (states * before + here * own);
}

std::int64_t bytes_of(const Manifest& manifest, std::size_t f) {
  const ShardFile& file = manifest.files[f];
  return static_cast<std::int64_t>(header_of(manifest, f).size()) +
         offset_of(file, file.pieces.size(), 0);
}

void require_same(const Recipe& saved, const Recipe& run, const std::filesystem::path& file) {
  const auto same = [&](const std::string& was, const std::string& is) {
    if (was == is) return;
    throw UsageError(fmt::format(
        "'{}' was saved with {}, and this run has {}: that leads to other weights; give "
        "what it was saved with, or start anew without --resume",
        file.string(), was, is));
  };
  const auto model = [](const Recipe& r) {
    return fmt::format("a model of {} parameters in {} layers (--layers, --width)",
                       parameter_count(r.model), r.model.size());
  };
  const auto precision = [](const Recipe& r) {
    return fmt::format("--precision {}", data_parallel::name_of_precision(r.precision));
  };
  const auto clip = [](const Recipe& r) {
    return r.clip > 0 ? fmt::format("--clip {}", r.clip) : "no --clip";
  };
  same(model(saved), model(run));
  same(precision(saved), precision(run));
  same(fmt::format("--seed {}", saved.seed), fmt::format("--seed {}", run.seed));
  same(fmt::format("--batch {}", saved.batch), fmt::format("--batch {}", run.batch));
  same(fmt::format("--learning-rate {}", saved.learning_rate),
       fmt::format("--learning-rate {}", run.learning_rate));
  same(clip(saved), clip(run));
  if (json_of(saved.model) != json_of(run.model)) same("layers of other shapes", "its own");
}

std::uint64_t checksum(std::int64_t first, std::span<const float> values) {
  std::uint64_t sum = 0;
  for (const float value : values) {  // splitmix64 (Steele, Lea, Flood: OOPSLA 2014), one to one
    std::uint64_t x = std::bit_cast<std::uint32_t>(value) ^
                      static_cast<std::uint64_t>(++first) * 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    sum += x ^ x >> 31;
  }
  return sum;
}

}  // namespace fivecuts::zero_redundancy
