#include <algorithm>

#include "ch07_zero/checks/measured.hpp"

using namespace fivecuts;
using namespace fivecuts::exercise;

namespace {

/// One pass over the layers, watched from what the learner's code calls.
class Watch {
 public:
  Watch(ExerciseCheck& check, const std::vector<std::int64_t>& counts)
      : context_(check.context()), counts_(counts), at_rest_(context_.memory.live()) {}

  Compute compute() {
    return {[this](std::size_t k, Tensor weights) { whole("forward", k, weights); },
            [this](std::size_t k, Tensor weights) { whole("backward_input", k, weights); },
            [this](std::size_t k) {
              called("backward_weight", k);
              beside("backward_weight", k, 0,
                     "its gradient needs none of them: release the layer before it");
            }};
  }

  std::string calls, complaint;

 private:
  void called(const char* what, std::size_t k) { calls += fmt::format(" {}({})", what, k); }

  void beside(const char* what, std::size_t k, std::int64_t allowed, const char* why) {
    const std::int64_t held = context_.memory.live() - at_rest_;
    if (held <= allowed || !complaint.empty()) return;
    complaint =
        fmt::format("in {}({}) rank {} held {} bytes beside its shards, the target is {}: {}", what,
                    k, context_.rank(), held, allowed, why);
  }

  void whole(const char* what, std::size_t k, Tensor weights) {
    called(what, k);
    if (k >= counts_.size() || weights.count() != counts_[k]) {
      fail(
          fmt::format("{}({}, weights) of {} elements: there are {} layers, and `weights` is the "
                      "layer's whole bucket",
                      what, k, weights.count(), counts_.size()));
    }
    const auto want = of_rank(0, k, counts_[k]);
    const auto got = copy_out(weights);
    for (std::size_t i = 0; i < got.size() && complaint.empty(); ++i) {
      if (static_cast<double>(got[i]) == want[i]) continue;
      complaint = fmt::format(
          "in {}({}) rank {}, element {}: got {}, want {}; the weights were not whole: the own "
          "shard belongs in its place, and all_gather brings the others",
          what, k, context_.rank(), i, got[i], want[i]);
    }
    beside(what, k, 4 * counts_[k], "no other layer is needed now: release each after its turn");
  }

  Context& context_;
  const std::vector<std::int64_t>& counts_;
  std::int64_t at_rest_;
};

void check_case(ExerciseCheck& check, const std::vector<std::int64_t>& counts) {
  Communicator& comm = check.comm();
  Context& context = check.context();
  const int n = comm.size(), r = comm.rank();
  std::vector<Buffer> shards;
  std::int64_t once = 0;
  std::string want;
  for (std::size_t k = 0; k < counts.size(); ++k) {
    const Part mine = part_of(counts[k], n, r);
    shards.push_back(loaded(context, Category::parameter, part(of_rank(0, k, counts[k]), mine)));
    once += all_gather_elements(counts[k], n, r);
    want += fmt::format(" forward({})", k);
  }
  for (std::size_t k = counts.size(); k-- > 0;) {
    want += fmt::format(" backward_input({0}) backward_weight({0})", k);
  }
  Watch watch(check, counts);
  const Used used = measured(check, [&] {
    forward_and_backward(comm, context.device, views(shards), counts, watch.compute());
  });
  check.holds(watch.complaint.empty(), watch.complaint);
  check.holds(watch.calls == want,
              fmt::format("the calls were{}; they should be{}", watch.calls, want));
  for (std::size_t k = 0; k < counts.size(); ++k) {
    check.equal(fmt::format("this rank's shard of layer {}, afterwards", k), copy_out(shards[k]),
                part(of_rank(0, k, counts[k]), part_of(counts[k], n, r)));
  }
  check.at_most("held beside its shards at the peak, in bytes", used.allocated,
                4 * std::ranges::max(counts));
  check.at_most(
      "sent elements (once through the model is a gather of " + std::to_string(once) + ")",
      used.sent.sent / 4, 2 * once);
}

}  // namespace

int main(int argc, char** argv) {
  return run_exercise(argc, argv, "ch07_ex3",
                      "each layer whole for its two turns only, and gathered twice",
                      [](ExerciseCheck& check) {
                        check_case(check, {12, 12});
                        check_case(check, layer_counts);
                      });
}
