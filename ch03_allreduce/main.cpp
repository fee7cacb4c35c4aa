#include "ch03_allreduce/algorithms.hpp"
int main() { return 0; }
