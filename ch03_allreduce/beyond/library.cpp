#include "ch03_allreduce/beyond/beyond.hpp"

namespace fivecuts::all_reduce {

void library(Communicator& comm, Tensor x, Reduction how, Workspace&) { comm.all_reduce(x, how); }

}  // namespace fivecuts::all_reduce
