#include "common/support/main.hpp"

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <map>
#include <thread>

#include "common/comm/cuda_module.hpp"
#include "common/comm/device_choice.hpp"
#include "common/comm/transport_mpi.hpp"
#include "common/comm/transport_threads.hpp"
#include "common/support/units.hpp"

// Where Eigen calls OpenBLAS, a rank is one core's worth of work.
extern "C" void openblas_set_num_threads(int) __attribute__((weak));

namespace fivecuts {
namespace {

/// Temporaries of Eigen and MPI are freed and asked for again in every step: without this, the C
/// library gives each large one back to the system, and every use pays for fresh pages.
void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 16 << 20);
#endif
  if (openblas_set_num_threads != nullptr) openblas_set_num_threads(1);
}

/// What the command line says of the run itself, beside what a Context takes.
struct RunOptions {
  CommonOptions common;
  std::int64_t world = 4;  ///< ranks, if they are threads
  const CLI::Option* world_flag = nullptr;
  bool threads() const { return world_flag->count() > 0; }
  DeviceWish device = DeviceWish::best;
  std::string cluster = "laptop";
  bool no_guard = false;
};

void add_common(CLI::App& app, RunOptions& run) {
  CommonOptions& options = run.common;
  run.world_flag = add_count(app, "--world", run.world, 1, 4096,
                             "run N ranks as threads of this process, without mpirun")
                       ->default_str("");
  static const std::map<std::string, DeviceWish> devices = {{"auto", DeviceWish::best},
                                                            {"cpu", DeviceWish::cpu},
                                                            {"cuda", DeviceWish::cuda},
                                                            {"meta", DeviceWish::meta}};
  app.add_option_function<std::string>(
         "--device", [&run](const std::string& name) { run.device = devices.at(name); },
         "cpu, cuda, auto (cuda where each rank finds a GPU, or else cpu), or meta: a dry run, "
         "that "
         "counts everything and computes nothing")
      ->check(CLI::IsMember({"auto", "cpu", "cuda", "meta"}))
      ->type_name("NAME")
      ->default_str("auto");
  app.add_option("--cluster", run.cluster,
                 fmt::format("whose times the clock counts: {}, or a JSON file",
                             fmt::join(cluster_names(), ", ")))
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option_function<std::string>(
         "--memory",
         [&options](const std::string& text) { options.memory_cap = parse_bytes(text); },
         "most bytes that a rank may hold, as 80GB or 512MiB (default: no limit)")
      ->type_name("SIZE");
  add_positive(app, "--timeout", options.timeout_s, 1e6,
               "seconds without progress before the guard ends the run");
  app.add_flag("--no-guard", run.no_guard,
               "watch no waits: a rank may stand still for ever, say in a debugger");
  app.add_flag("--verbose", options.verbose,
               "one line for each message sent and each collective of the library");
  app.add_option("--language", options.language, "of the claims: en or zh")
      ->check(CLI::IsMember({"en", "zh"}))
      ->type_name("en|zh");
}

/// All of `app`'s flags, for the sentence about an unknown one.
std::string flags_of(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    text += (text.empty() ? "" : " ") + option->get_name();
  }
  return text;
}

/// How many ranks mpirun started, as it tells them before MPI begins; 1 without it.
int launched_ranks() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (const char* value = std::getenv(name)) return std::atoi(value);
  }
  return 1;
}

/// Reads the flags, the same on every rank. Returns false if --help was asked for.
bool parse(CLI::App& app, int argc, char** argv) {
  try {
    app.allow_extras();
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return false;
  } catch (const CLI::ParseError& error) {
    std::string text = error.what();
    std::replace(text.begin(), text.end(), '\n', ' ');
    throw UsageError(fmt::format("{}; try: {} --help", text, app.get_name()));
  }
  if (const auto extras = app.remaining(); !extras.empty()) {
    throw UsageError(fmt::format("there is no flag '{}'; possible are: {}; try: {} --help",
                                 extras.front(), flags_of(app), app.get_name()));
  }
  return true;
}

/// Prints one sentence and ends all ranks. Where every rank has the same to say, one of them
/// speaks, and its end takes the others along: those who know that it is said elsewhere wait for
/// that, and speak only if it never comes; otherwise a rank lets those below it speak first.
[[noreturn]] void end_all(int rank, int size, int status, const char* what,
                          bool said_elsewhere = false) {
  using namespace std::chrono_literals;
  const auto turn = rank > 0 ? 300ms + 200ms * std::min(rank, 8) : 0ms;
  std::this_thread::sleep_for(said_elsewhere ? 5000ms : turn);
  std::fflush(stdout);
  fmt::print(stderr, "rank {} of {}: {}\n", rank, size, what);
  abort_all_ranks(status);
}

/// Ends a run that its ranks refuse alike. Should one refuse alone, the guard names it, and it says
/// why.
int refuse(Context& context, const CLI::App& app, const UsageError& error) {
  try {
    context.world.end_of_run();
    if (context.rank() == 0) fmt::print(stderr, "{}: {}\n", app.get_name(), error.what());
    return exit_usage;
  } catch (const GuardError& disagreement) {
    fmt::print(stderr, "rank {} of {}: {}\n", context.rank(), context.size(), error.what());
    end_all(context.rank(), context.size(), exit_guard, disagreement.what(),
            disagreement.said_elsewhere);
  }
}

/// What a Context of this rank takes. Where ranks are threads, `auto` is the cpu: they are there to
/// be quick, or to be looked at.
CommonOptions options_for(Transport& world, const RunOptions& run) {
  const bool threads = run.device == DeviceWish::best && run.threads();
  Guard guard(world.rank(), world.size(), run.common.timeout_s, run.common.guard);
  const auto watch = guard.watch([] { return "the others to look for GPUs"; });
  const DeviceChoice choice = choose_device(world, threads ? DeviceWish::cpu : run.device);
  if (!choice.reason.empty() && built_with_cuda() && world.rank() == 0) {
    fmt::print("{}\n", choice.reason);
    std::fflush(stdout);
  }
  CommonOptions options = run.common;
  options.device = choice.kind;
  options.gpu = choice.gpu;
  options.nccl = choice.nccl;
  options.why_this_device = choice.reason;
  return options;
}

/// This rank's part of a run; ends all ranks if it fails.
int run_story(const Program& program, CLI::App& app, std::unique_ptr<Transport> world,
              const RunOptions& run) {
  const int rank = world->rank(), size = world->size();
  std::optional<Context> context;
  try {
    const CommonOptions options = options_for(*world, run);
    context.emplace(std::move(world), options);
    const int mine = program.story(*context);
    context->world.end_of_run();
    const auto all = context->world.gather(mine);
    return *std::max_element(all.begin(), all.end());
  } catch (const UsageError& error) {
    if (context) return refuse(*context, app, error);
    if (rank == 0) fmt::print(stderr, "{}: {}\n", app.get_name(), error.what());
    return exit_usage;
  } catch (const GuardError& error) {
    end_all(rank, size, exit_guard, error.what(), error.said_elsewhere);
  } catch (const std::exception& error) {
    end_all(rank, size, exit_failed, error.what());
  } catch (...) {
    end_all(rank, size, exit_failed, "something was thrown that is no std::exception");
  }
}

/// `status`, unless what was printed did not get out: to a full disk, say.
int if_printed(int status) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  std::fputs("not all output could be written\n", stderr);
  return std::max<int>(status, exit_failed);
}

std::atomic<bool> threads_run = false;

/// A rank that calls exit() takes the others along, and must not look like success.
void refuse_early_exit() {
  if (!threads_run) return;
  std::fputs("a rank ended the process while others were running\n", stderr);
  std::fflush(nullptr);
  std::_Exit(exit_failed);
}

/// Ranks as threads of this process. Their statuses are the same.
int run_threads(const Program& program, CLI::App& app, const RunOptions& run) {
  std::atomic<int> status = exit_ok;
  std::atexit(refuse_early_exit);
  threads_run = true;
  try {
    if (program.starts_threads) {
      threads_run = false;  // that is the program's affair
      const auto alone = threads_world(1);
      return program.starts_threads(static_cast<int>(run.world), options_for(*alone.front(), run));
    }
    on_threads(static_cast<int>(run.world), [&](std::unique_ptr<Transport> world) {
      const int mine = run_story(program, app, std::move(world), run);
      if (mine > status) status = mine;
    });
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", program.name, error.what());
    status = exit_failed;
  }
  threads_run = false;
  return if_printed(status);
}

void check_world(const RunOptions& run, const std::string& name) {
  if (run.threads() && launched_ranks() > 1) {
    throw UsageError(
        fmt::format("--world {} starts its ranks as threads of one process, and mpirun has started "
                    "{} already; try without "
                    "mpirun: {} --world {}",
                    run.world, launched_ranks(), name, run.world));
  }
}

}  // namespace

int run_program(int argc, char** argv, const Program& program) {
  keep_freed_memory();
  CLI::App app(program.about, program.name);
  RunOptions run;
  run.common.timeout_s = program.timeout_s;
  if (program.declare) program.declare(app);
  add_common(app, run);
  bool help = false;
  std::optional<UsageError> wrong;
  try {
    help = !parse(app, argc, argv);
    check_world(run, program.name);
    const bool observed = program.observed && (run.threads() || !mpi_is_simulated());
    if (observed) run.common.cluster = load_cluster(run.cluster);
    run.common.guard = observed && !run.no_guard;
  } catch (const UsageError& error) {
    wrong = error;
  }
  const bool runs = !help && !wrong;
  if (runs && run.threads()) return run_threads(program, app, run);

  const auto speak = [&] {
    if (help) fmt::print("{}", app.help());
    if (wrong) fmt::print(stderr, "{}: {}\n", program.name, wrong->what());
    return wrong ? exit_usage : exit_ok;
  };
  if (!runs && launched_ranks() == 1) return speak();
  MpiSession session(argc, argv);
  std::unique_ptr<Transport> world = session.world();
  if (runs) return if_printed(run_story(program, app, std::move(world), run));
  if (world->rank() == 0) speak();
  return wrong ? exit_usage : exit_ok;
}

CLI::Option* add_count(CLI::App& app, const std::string& flag, std::int64_t& value,
                       std::int64_t least, std::int64_t most, const std::string& help) {
  const std::int64_t fallback = std::clamp(value, least, most);
  const auto check = [flag, least, most, fallback](const std::string& text) -> std::string {
    std::int64_t number = 0;
    const char* end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, number);
    if (error == std::errc() && at == end && number >= least && number <= most) return {};
    return fmt::format("'{}' is not possible; give a whole number from {} to {}, as in {} {}", text,
                       least, most, flag, fallback);
  };
  return app.add_option(flag, value, help)
      ->check(CLI::Validator(check, ""))
      ->type_name("N")
      ->capture_default_str();
}

CLI::Option* add_positive(CLI::App& app, const std::string& flag, double& value, double most,
                          const std::string& help) {
  // The value of a flag that is left out may be none that can be given, as 0 for "no limit".
  const double fallback = value > 0 && value <= most ? value : std::min(1.0, most);
  const auto check = [flag, most, fallback](const std::string& text) -> std::string {
    char* end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    if (!text.empty() && *end == '\0' && number > 0 && number <= most) return {};
    return fmt::format("'{}' is not possible; give a number above 0 and up to {:g}, as in {} {:g}",
                       text, most, flag, fallback);
  };
  return app.add_option(flag, value, help)
      ->check(CLI::Validator(check, ""))
      ->type_name("X")
      ->capture_default_str();
}

std::filesystem::path source_folder() { return FIVECUTS_SOURCE_DIR; }

}  // namespace fivecuts
