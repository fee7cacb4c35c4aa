#pragma once
// The program's flags.
#include "ch01_overview/experiments.hpp"
#include "common/support/main.hpp"

namespace fivecuts::overview {

/// A flag for one of `all` by its name.
template <class All, class Choose>
void add_choice(CLI::App& app, const char* flag, const All& all, const char* fallback,
                const char* help, Choose choose) {
  std::vector<std::string> names;
  for (const auto& one : all) names.emplace_back(one.name);
  app.add_option_function<std::string>(
         flag,
         [all, choose](const std::string& chosen) {
           for (const auto& one : all) {
             if (chosen == one.name) choose(one);
           }
         },
         help)
      ->check(CLI::IsMember(names))
      ->type_name("NAME")
      ->default_str(fallback);
}

inline void declare(CLI::App& app, Options& o) {
  add_count(app, "--layers", o.layers, 1, 1000, "layers of the model");
  add_count(app, "--width", o.width, 1, 100000, "rows and columns of each layer's matrix");
  add_count(app, "--scale", o.scale, 1, 100000, "what is really held is 1 / N as wide");
  add_count(app, "--batch", o.batch, 1, 1000000, "rows of the global batch");
  o.parts = 4;  // what the refusal's example says; 0 is for "not given"
  add_count(app, "--parts", o.parts, 1, most_parts,
            "ranks of the placement map (default: the run's, 64 at most, or 4)")
      ->default_str("");
  o.experts = 8;
  add_count(app, "--experts", o.experts, 1, 256, "experts of a layer (default: two for each rank)")
      ->default_str("");
  o.parts = o.experts = 0;
  add_choice(app, "--recipe", all_recipes(), o.recipe.name, "types of the model state",
             [&o](const Recipe& recipe) { o.recipe = recipe; });
  add_choice(app, "--cut", all_cuts(), name_of(o.cut), "how the run's own ranks hold the model",
             [&o](const CutFacts& facts) { o.cut = facts.cut; });
  app.add_option("--figure", o.figure, "write the placement map to this file, as SVG")
      ->type_name("FILE");
}

}  // namespace fivecuts::overview
