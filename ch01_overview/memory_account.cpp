#include "ch01_overview/memory_account.hpp"

#include <numeric>

#include "common/model/random.hpp"

namespace fivecuts::overview {

std::span<const Recipe> all_recipes() {
  static constexpr Recipe recipes[] = {{"bf16", DType::bf16, DType::bf16},
                                       {"fp32_gradients", DType::bf16, DType::f32},
                                       {"fp32", DType::f32, DType::f32}};
  return recipes;
}

// --- what stays: model state ---

// A layer of 10,000 x 10,000 in bf16: 0.2 GB, 0.2 GB, and 3 x 0.4 GB; 70 of them are 112 GB.
ModelState::ModelState(Device& device, const Placement& placement, const Recipe& recipe) {
  for (const Holding& h : placement) {
    parameters.emplace_back(device, Category::parameter, 1, h.parameters.count, recipe.parameter);
    zero(parameters.back());
  }
  for (const Holding& h : placement) {
    gradients.emplace_back(device, Category::gradient, 1, h.gradients.count, recipe.gradient);
    zero(gradients.back());
  }
  for (const Holding& h : placement) {
    optimizer.emplace_back(device, h.optimizer.count, recipe.parameter);
    if (!optimizer.back().master.tensor().empty()) zero(optimizer.back().master);
  }
}

// --- what comes and goes: activations ---

// Live bytes over one step, L layers, b rows (each layer keeps z and y until its turn backward):
//
//   forward  0  1  2 .. L-1 | loss | backward  L-1 .. 2  1  0 | update
//            /              ^                                 \ .
//   state ___________________________________________________________ the same all along
//
// The peak is at the turn: 2 b out elements a layer, the input, and dx, the gradient on its way.
void training_step(ModelState& state, const ModelShape& model, std::int64_t rows) {
  Device& device = *state.parameters.front().tensor().device();
  const DType type = state.parameters.front().tensor().type();
  const Buffer input(device, Category::activation, rows, model.front().in, type);
  const Buffer labels(device, Category::activation, 1, rows, DType::i64);
  const Buffer losses(device, Category::activation, 1, rows);
  fill_uniform(input, 1, 0, 1.0f);
  zero(labels);

  std::vector<Saved> saved;
  Tensor x = input;
  for (std::size_t k = 0; k < model.size(); ++k) {
    saved.emplace_back(device, model[k], rows, type);
    forward(model[k], state.parameters[k], x, saved[k]);
    x = saved[k].output();
  }
  softmax_cross_entropy(x, labels, losses);

  Tensor dy = x;  // the loss left its gradient there
  Buffer keep;    // owns dy, once it is not the logits
  for (std::size_t k = model.size(); k-- > 0;) {
    Buffer dx;  // the first layer's input is data: nobody asks for its gradient
    if (k > 0) dx = Buffer(device, Category::activation, rows, model[k].in, type);
    backward_input(model[k], state.parameters[k], saved[k], dy, dx);
    backward_weight(model[k], saved[k], state.gradients[k]);
    keep = std::move(dx);
    dy = keep;
  }
  for (std::size_t k = 0; k < model.size(); ++k) {
    adam_step(state.parameters[k], state.gradients[k], rows, state.optimizer[k], {});
  }
}

// --- the account ---

Account hold(Device& device, const ModelShape& model, const Placement& placement,
             const Recipe& recipe, std::int64_t rows) {
  MemoryLedger& ledger = device.memory();
  ModelState state(device, placement, recipe);
  Account account{ledger.live(Category::parameter), ledger.live(Category::gradient),
                  ledger.live(Category::optimizer)};
  if (rows > 0) {
    for (std::size_t k = 0; k < model.size(); ++k) {
      const AdamState& optimizer = state.optimizer[k];
      initialise(model[k], optimizer.weights(state.parameters[k]), 1, static_cast<int>(k));
      optimizer.round_weights_into(state.parameters[k]);
    }
    ledger.reset_peak();
    training_step(state, model, rows);
    account.activation = ledger.peak(Category::activation);
  }
  return account;
}

Account hold_dry(const ModelShape& model, const Placement& placement, const Recipe& recipe,
                 std::int64_t rows, std::int64_t cap) {
  MemoryLedger ledger(cap);
  Device device(ledger, Device::Kind::meta);
  return hold(device, model, placement, recipe, rows);
}

Account hold_dry(const ModelShape& model, const Recipe& recipe, std::int64_t rows) {
  return hold_dry(model, data_parallel(model, 1, 0), recipe, rows);
}

// Activations grow with every row, so the place where they pass can be halved in on.
std::int64_t batch_that_passes(const ModelShape& model, const Recipe& recipe) {
  const auto passes = [&](std::int64_t rows) {
    const Account account = hold_dry(model, recipe, rows);
    return account.activation > account.optimizer;
  };
  std::int64_t enough = 1;
  while (!passes(enough)) enough *= 2;
  std::int64_t too_few = enough / 2;
  while (enough - too_few > 1) {
    const std::int64_t middle = std::midpoint(too_few, enough);
    (passes(middle) ? enough : too_few) = middle;
  }
  return enough;
}

}  // namespace fivecuts::overview
