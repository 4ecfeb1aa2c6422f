// Observed counts: what expected counts are compared with.
#pragma once

#include <cstdint>

#include "parallel.hpp"

namespace hedgerow {

// The outputs that were observed at N positions: labels, or pairs of labels.
struct Observed {
  int64_t n_positions;
  int64_t n_outputs;
  const int32_t* codes;   // (N,), -1: nothing was
  const double* weights;  // (N,) how much a position counts; null: all 1
};

// expected (N, n_outputs): from the output that was observed subtract the weight of its position.
void subtract_observed(const Observed& observed, double* expected, int n_threads, Stop& stop);

// How many positions have the output that was observed as the most probable one.
int64_t count_right(const Observed& observed, const double* probabilities, int n_threads,
                    Stop& stop);

}  // namespace hedgerow
