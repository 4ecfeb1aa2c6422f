// Observed counts, which expected counts are compared with.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel.hpp"

namespace hedgerow {

// The outputs that were observed at N positions: labels, or pairs of labels.
struct Observed {
  int64_t n_positions;
  int64_t n_outputs;
  const int32_t* codes;   // (N,), -1: nothing was observed
  const double* weights;  // (N,) weight of each position; null: all 1
};

// Subtracts the weight of each position from its observed output in expected, (N, n_outputs).
void subtract_observed(const Observed& observed, double* expected, int n_threads, Stop& stop);

// Number of positions whose most probable output is the observed one.
int64_t count_right(const Observed& observed, const double* probabilities, int n_threads,
                    Stop& stop);

// The most probable output of each of n positions, the first if there are several: probabilities
// (n, n_outputs).
void fill_most_probable(const double* probabilities, int64_t n, int64_t n_outputs, int32_t* out,
                        int n_threads, Stop& stop);

// How often label k follows label j in n chains, (n_labels, n_labels); a label of -1 is not known.
std::vector<int64_t> count_pairs(const int32_t* codes, const int64_t* offsets, int64_t n,
                                 int64_t n_labels);

}  // namespace hedgerow
