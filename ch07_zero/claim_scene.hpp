#pragma once
// What the chapter's claims are measured on: the notes' small case, four layers in bf16, Psi =
// 1,024 for N = 4, in dry worlds of the run's own number of ranks.
#include "ch07_zero/worlds.hpp"

namespace fivecuts::zero_redundancy {

inline constexpr std::int64_t element = 2;  // bytes

struct Scene {
  const Context& run;
  const Digits& digits;
  const Figure8& figure;
  ClaimRows& rows;

  /// The run's own size; four ranks where it has one, or more than a dry world takes in a moment.
  int n() const { return run.size() >= 2 && run.size() <= 64 ? run.size() : 4; }
  double psi() const { return static_cast<double>(parameter_count(small_case(n()))); }
  /// (N-1)/N Psi: what every rank sends in a reduce-scatter or an all-gather of all layers.
  double unit() const { return psi() * (n() - 1) / n(); }

  std::vector<StepCost> steps(int stage, std::int64_t k = 1, bool prefetch = true) const {
    return steps_of(make_trainer<>, stage, k, prefetch);
  }
  std::vector<StepCost> steps_of(const Make& make, int stage, std::int64_t k = 1,
                                 bool prefetch = true) const {
    World world{.ranks = n(), .model = small_case(n()), .micro_batches = k, .rows = k};
    world.settings = {stage, DType::bf16, prefetch};
    world.make = make;
    return dry_steps(world);
  }
  /// Elements that each rank sends in a step.
  double sent(int stage, std::int64_t k = 1) const { return sent_by(make_trainer<>, stage, k); }
  double sent_by(const Make& make, int stage, std::int64_t k = 1) const {
    return static_cast<double>(steps_of(make, stage, k).front().sent.sent) / element;
  }
  /// ... for one more micro-batch: for its forward and backward pass alone.
  double sent_for_another(int stage) const { return sent(stage, 2) - sent(stage, 1); }
};

/// f(context, trainer) on every rank of a dry world of the small case; what rank 0 returns.
template <class F>
double on_trainer(const Scene& s, int stage, const F& f, const Make& make = make_trainer<>) {
  CommonOptions options;
  options.device = Device::Kind::meta;
  return world_results<double>(s.n(), options,
                               [&](Context& context) {
                                 const auto trainer =
                                     make(context.device, context.world, small_case(s.n()), 1,
                                          {stage, DType::bf16});
                                 return static_cast<double>(f(context, *trainer));
                               })
      .front();
}

struct Forward {
  double elements = 0, collectives = 0, flops = 0;
};
/// What the forward pass of one row moves and computes.
Forward forward_pass(const Scene& s, int stage);

void claims_of_state(const Scene& s);  ///< what is held, and that it trains to the same
void claims_of_wire(const Scene& s);   ///< what is sent

}  // namespace fivecuts::zero_redundancy
