// Says which device and transport a run with these ranks would have, and why: ./course doctor asks.
//   mpirun -n 4 build/common/tools/which_device
#include "common/comm/cuda_module.hpp"
#include "common/support/main.hpp"

int main(int argc, char** argv) {
  using namespace fivecuts;
  return run_program(argc, argv,
                     {"which_device", "says which device and transport a run has, and why", nullptr,
                      [](Context& context) -> int {
                        const std::string& why = context.options.why_this_device;
                        if (why.empty()) {
                          context.say("device {}, transport {}: as you said\n",
                                      name_of(context.device.kind()),
                                      context.world.transport().name());
                        } else if (!built_with_cuda()) {  // else it was said before
                          context.say("{}\n", why);
                        }
                        return exit_ok;
                      }});
}
