// Smoothed labelwise accuracy (Gross et al. 2006, Eqs. 9 and 10): the sum over positions of
//   weight * Q(p(label) - p(rival)),   Q(x) = 1 / (1 + exp(-sharpness * x)),
// where the rival is the most probable other label. Equal rivals share its part of the gradient:
// where all labels are alike, as before any training, every other choice would lead nowhere.
#pragma once

#include <cstdint>

#include "parallel.hpp"

namespace hedgerow {

// Marginals of N positions over K labels, and how they should be.
struct LabelledMarginals {
  int64_t n_positions;
  int n_labels;
  const double* marginals;  // (N, K)
  const int32_t* labels;    // (N,) -1: not known, the position does not count
  const double* weights;    // (N,)
};

// What each position adds to the sum. terms: (N,)
void fill_accuracy_terms(const LabelledMarginals& table, double sharpness, double* terms,
                         Stop& stop);

// How the sum changes with each marginal. gradient: (N, K)
void fill_accuracy_gradient(const LabelledMarginals& table, double sharpness, double* gradient,
                            Stop& stop);

}  // namespace hedgerow
