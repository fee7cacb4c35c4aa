#include "common/support/exercise.hpp"

#include <cmath>

#include "common/support/main.hpp"

namespace fivecuts {
namespace {

/// The verdict "not yet", said alike on every rank.
struct NotYet : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct Blocked : std::runtime_error {
  using std::runtime_error::runtime_error;
};

bool close(double got, double want) {
  return std::abs(got - want) <= 1e-5 * std::abs(want) + 1e-12;
}

bool is_result(std::span<const float> got, const std::vector<double>& result) {
  bool same = got.size() == result.size();
  for (std::size_t i = 0; same && i < got.size(); ++i) {
    same = close(static_cast<double>(got[i]), result[i]);
  }
  return same;
}

}  // namespace

void unfinished(const std::string& todo) { throw NotYet(todo); }

void ExerciseCheck::equal(const std::string& what, std::span<const float> got,
                          std::span<const double> want, std::span<const Mistake> mistakes) {
  std::string complaint;
  for (std::size_t i = 0; complaint.empty() && i < want.size(); ++i) {
    const double value = static_cast<double>(got[i]);
    if (close(value, want[i])) continue;
    complaint = fmt::format("{}: rank {}, element {}: got {:.7g}, want {:.7g}", what, comm().rank(),
                            i, value, want[i]);
    for (const auto& [result, sentence] : mistakes) {
      if (!is_result(got, result)) continue;
      complaint += "; " + sentence;
      break;
    }
  }
  complain(complaint);
}

void ExerciseCheck::at_most(const std::string& what, std::int64_t used, std::int64_t target) {
  complain(used <= target ? ""
                          : fmt::format("rank {} {}: {}, the target is {}", comm().rank(), what,
                                        used, target));
}

ExerciseCheck::Used ExerciseCheck::used_by(const std::function<void()>& work) {
  const Reductions none_allowed{.bytes_before = context_.traffic.modelled().sent};
  const Traffic before = context_.traffic.measured();
  context_.memory.reset_peak();
  const std::int64_t live = context_.memory.live();
  work();
  const Used used{context_.traffic.measured() - before, context_.memory.peak() - live,
                  context_.memory.live() - live};
  nothing_but(none_allowed);
  return used;
}

void ExerciseCheck::holds(bool holds, const std::string& sentence) {
  complain(holds ? "" : sentence);
}

AllReduce ExerciseCheck::counted(Reductions& used) {
  const auto charged = [this] { return context_.traffic.modelled().sent; };
  used.bytes_before = charged();
  return [&used, charged](Communicator& on, Tensor tensor) {
    const std::int64_t before = charged();
    library_all_reduce(on, tensor);
    ++used.calls;
    used.elements += tensor.count();
    used.bytes += charged() - before;
  };
}

void ExerciseCheck::nothing_but(const Reductions& used) {
  const std::int64_t charged = context_.traffic.modelled().sent - used.bytes_before;
  holds(
      charged == used.bytes,
      "a collective of the library was called directly, where it is not counted: use only what the "
      "function is given");
}

void ExerciseCheck::needs(bool there, const std::string& what) {
  if (!there) throw Blocked(what);
}

void ExerciseCheck::complain(const std::string& mine) {
  for (const std::string& complaint : comm().gather_text(mine)) {
    if (!complaint.empty()) throw NotYet(complaint);
  }
}

int run_exercise(int argc, char** argv, const std::string& name, const std::string& targets,
                 const std::function<void(ExerciseCheck&)>& check) {
  Program program;
  program.name = name;
  program.about = "checks an exercise";
  program.timeout_s = 10;
  program.story = [&](Context& context) -> int {
    if (context.device.dry()) {
      context.say("blocked: it looks at numbers, and --device meta has none; use --device cpu\n");
      return exit_blocked;
    }
    try {
      ExerciseCheck run(context);
      check(run);
      context.say("passed: {}\n", targets);
      return exit_ok;
    } catch (const NotYet& error) {
      context.say("not yet: {}\n", error.what());
      return exit_failed;
    } catch (const Blocked& error) {
      context.say("blocked: {}\n", error.what());
      return exit_blocked;
    } catch (const GuardError&) {
      throw;
    } catch (const std::exception& error) {
      // Thrown by the learner's own calls, on this rank at least.
      throw std::runtime_error(fmt::format("not yet: {}", error.what()));
    }
  };
  return run_program(argc, argv, program);
}

}  // namespace fivecuts
