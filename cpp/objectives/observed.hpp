// Observed counts, which expected counts are compared with.
#pragma once

#include <cstdint>

#include "parallel.hpp"

namespace hedgerow {

// The outputs that were observed at N positions: labels, or pairs of labels.
struct Observed {
  int64_t n_positions;
  int64_t n_outputs;
  const int32_t* codes;   // (N,), -1: nothing was
  const double* weights;  // (N,) weight of each position; null: all 1
};

// Subtracts the weight of each position from its observed output in expected, (N, n_outputs).
void subtract_observed(const Observed& observed, double* expected, int n_threads, Stop& stop);

// Number of positions whose most probable output is the observed one.
int64_t count_right(const Observed& observed, const double* probabilities, int n_threads,
                    Stop& stop);

}  // namespace hedgerow
