// Tests of the core without Python, for the sanitizers.
#include <cstdio>

#include "tests/check.hpp"

int main() {
  using namespace hedgerow::tests;
  test_trellis();
  test_mixing();
  test_automaton();
  test_tangent();
  test_linear();
  test_bins();
  test_random();
  test_examples();
  test_trees();
  test_accuracy();
  test_numbers();
  test_strings();
  test_parallel();
  if (n_failures > 0) {
    std::printf("core_test: %d of %d checks failed\n", n_failures, n_checks);
    return 1;
  }
  std::printf("core_test: %d checks passed\n", n_checks);
  return 0;
}
