#include "common/support/test_main.hpp"
