#pragma once
// The program's flags, and which of them do not go together.
#include <ranges>

#include "ch03_allreduce/demos.hpp"
#include "common/observe/output_file.hpp"
#include "common/support/main.hpp"

namespace fivecuts::all_reduce {

struct Options : Setting {
  std::optional<std::filesystem::path> figure{}, plot{};
  const Demo* demo = nullptr;
  std::vector<const CLI::Option*> not_in_demos{};  ///< flags that no demo looks at
};

/// A flag for one of several words.
template <class T>
CLI::Option* add_choice(CLI::App& app, const std::string& flag, T& value,
                        const std::map<std::string, T>& words, const std::string& first,
                        const std::string& help) {
  const auto choose = [&value, words](const std::string& word) { value = words.at(word); };
  return app.add_option_function<std::string>(flag, choose, help)
      ->check(CLI::IsMember(words))
      ->type_name("NAME")
      ->default_str(first);
}

inline void declare(CLI::App& app, Options& o) {
  std::map<std::string, const Demo*> demos;
  for (const Demo& demo : all_demos()) demos[demo.name] = &demo;
  add_choice(app, "--demo", o.demo, demos, "",
             fmt::format("show a mistake instead: {}", fmt::join(std::views::keys(demos), ", ")));
  add_count(app, "--elements", o.elements, 1, 1'000'000'000'000, "elements of the tensor");
  const auto before = app.get_options().size();
  add_choice(app, "--type", o.type,
             {{"fp32", DType::f32}, {"bf16", DType::bf16}, {"int64", DType::i64}}, "fp32",
             "of the elements: fp32, bf16 or int64");
  add_choice(app, "--result", o.result,
             {{"sum", Result::sum}, {"average", Result::average}, {"max", Result::max}}, "sum",
             "what the ranks end with: sum, average or max");
  add_count(app, "--ranks-per-node", o.ranks_per_node, 0, 4096,
            "pretend that so many ranks share a node, for hierarchical; 0: the real nodes");
  app.add_option("--figure", o.figure,
                 "write the notes' figure 3 as SVG: from this run, if it has 2 to 8 ranks with "
                 "numbers, else "
                 "from an example of 4")
      ->type_name("FILE");
  app.add_option("--plot", o.plot, "write the times over sizes as SVG")->type_name("FILE");
  const auto all = app.get_options();
  o.not_in_demos.assign(all.begin() + static_cast<std::ptrdiff_t>(before), all.end());
}

/// Throws UsageError, before any algorithm runs.
inline void refuse_impossible(const Options& o, const Context& context) {
  const bool dry = context.device.dry();
  // Asked of rank 0, which writes them: another host may have other links.
  const std::string clash = context.world.on_rank_0([&] {
    return o.figure && o.plot && same_file(*o.figure, *o.plot) ? std::string("one file") : "";
  });
  if (!clash.empty()) {
    throw UsageError(
        fmt::format("--figure and --plot would both be written to '{}'; give two files, as in "
                    "--figure ring.svg --plot times.svg",
                    o.figure->string()));
  }
  if (!dry && o.elements > 10'000'000) {
    throw UsageError(fmt::format(
        "{} elements are for a dry run: with numbers at most --elements 10000000, since "
        "full_exchange keeps those of all ranks; try --device meta",
        o.elements));
  }
  if (o.type == DType::i64 && o.result == Result::average) {
    throw UsageError(
        "the average of whole numbers is none: --result average goes with --type fp32 or bf16; try "
        "--type int64 --result sum");
  }
  if (o.ranks_per_node > context.size()) {
    throw UsageError(
        fmt::format("--ranks-per-node {} is more than the {} ranks there are; try --ranks-per-node "
                    "{}, or more ranks",
                    o.ranks_per_node, context.size(), context.size()));
  }
  if (o.plot && context.clock.cluster().unit) {
    throw UsageError(
        "--plot has nothing to draw: on the cluster 'unit' a message takes no time; try "
        "--cluster h100 --plot times.svg");
  }
  if (o.demo == nullptr) return;
  for (const CLI::Option* flag : o.not_in_demos) {
    if (flag->count() == 0) continue;
    throw UsageError(fmt::format(
        "--demo {} shows one mistake, with sums of fp32, and {} would change nothing in it; leave "
        "it out, as in: mpirun -n 4 ch03_allreduce --demo {} --timeout 3",
        o.demo->name, flag->get_name(), o.demo->name));
  }
  if (context.size() < 2 || dry || !context.options.guard) {
    throw UsageError(fmt::format(
        "--demo {} shows how ranks wait for each other: it takes two ranks, numbers and "
        "the guard; try: mpirun -n 4 ch03_allreduce --demo {} --timeout 3",
        o.demo->name, o.demo->name));
  }
}

}  // namespace fivecuts::all_reduce
