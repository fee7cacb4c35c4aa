// expect: not yet.*divided twice
#include "ch02_data_parallel/exercise.hpp"

namespace fivecuts::exercise {

void average(Communicator& comm, const AllReduce& all_reduce, Tensor gradient,
             std::int64_t samples) {
  const Buffer total(*gradient.device(), Category::workspace, 1, 1);
  const float mine = static_cast<float>(samples);
  copy_in(std::span(&mine, 1), total);
  all_reduce(comm, total);
  scale(gradient, 1.0f / copy_out(total).front());
  all_reduce(comm, gradient);
  scale(gradient, 1.0f / copy_out(total).front());
}

}  // namespace fivecuts::exercise
