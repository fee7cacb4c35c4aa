#pragma once
// The harness of the exercises. A check runs what a learner wrote on every rank and comes to one
// verdict:
//   passed    status 0
//   not yet   status 1, with one sentence: the rank, the global index, what was got and wanted; or
//             the target that was missed; or the TODO that is still there
//   hangs     status 3, with the guard's sentence
//   blocked   status 77: this run lacks what the exercise needs
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/comm/context.hpp"

namespace fivecuts {

/// What a starter does in place of the work: `todo` is "TODO(chNN/exK)" and what to do.
[[noreturn]] void unfinished(const std::string& todo);

class ExerciseCheck {
 public:
  explicit ExerciseCheck(Context& context) : context_(context) {}
  Context& context() { return context_; }
  Communicator& comm() { return context_.world; }

  /// A result that a typical mistake leads to, and the sentence that names the mistake.
  struct Mistake {
    std::vector<double> result;
    std::string sentence;
  };
  /// Collective. Ends the check unless every rank got what it wants, within 1e-5 of its size;
  /// `what` names the case. If a rank's whole result is that of one of its `mistakes`, the sentence
  /// says so.
  void equal(const std::string& what, std::span<const float> got, std::span<const double> want,
             std::span<const Mistake> mistakes = {});
  /// Collective. Ends the check unless `used` <= `target` on every rank: "sent 24 elements, the
  /// target is 12".
  void at_most(const std::string& what, std::int64_t used, std::int64_t target);
  /// The all-reduce to hand to a learner: the library's, counted in `used`, which must stay.
  struct Reductions {
    std::int64_t calls = 0, elements = 0;
    std::int64_t bytes = 0, bytes_before = 0;  ///< as the ledger charges them to the library
  };
  AllReduce counted(Reductions& used);
  /// Collective. Ends the check if the library was used in any way but through counted(used).
  void nothing_but(const Reductions& used);
  /// What a learner's work took on this rank: what it put on its wires, and the most bytes that were
  /// live beyond those before, and those that still are.
  struct Used {
    Traffic sent;
    std::int64_t allocated = 0, kept = 0;
  };
  /// Collective. Does `work`. Ends the check if that used the library.
  Used used_by(const std::function<void()>& work);
  /// Collective. Ends the check with `sentence` unless `holds` on every rank.
  void holds(bool holds, const std::string& sentence);
  /// Ends the check as blocked unless `there`, which must be the same on every rank.
  void needs(bool there, const std::string& what);

 private:
  /// Collective. The first rank's complaint that is not empty, the same on all, ends the check.
  void complain(const std::string& mine);
  Context& context_;
};

/// The main of an exercise's program. `targets` is printed when it passes.
int run_exercise(int argc, char** argv, const std::string& name, const std::string& targets,
                 const std::function<void(ExerciseCheck&)>& check);

}  // namespace fivecuts
