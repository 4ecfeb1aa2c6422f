// Tests of the core without Python, for the sanitizers.
#include <cstdio>

#include "tests/check.hpp"

// The undefined-behaviour sanitizer stops the program by an illegal instruction: print the stack.
extern "C" const char* __asan_default_options() { return "handle_sigill=1"; }

int main() {
  using namespace hedgerow::tests;
  for (const Test& test : all_tests()) {
    context = test.name;
    random_bits.seed(20260101);
    test.run();
  }
  if (n_failures > 0) {
    std::printf("core_test: %d of %d checks failed\n", n_failures, n_checks);
    return 1;
  }
  std::printf("core_test: %d checks passed\n", n_checks);
  return 0;
}
