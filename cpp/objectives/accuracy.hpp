// Smoothed labelwise accuracy (Gross et al. 2006, Eqs. 9 and 10): the sum over positions of
//   weight * Q(p(label) - p(rival)),   Q(x) = 1 / (1 + exp(-sharpness * x)),
// where the rival is the most probable other label. Rivals with equal probabilities share the
// gradient: if all labels are equally probable, as before training, choosing only one of them would
// not make progress.
#pragma once

#include <cstdint>

#include "parallel.hpp"

namespace hedgerow {

// Marginals of N positions over K labels, and the true labels.
struct LabelledMarginals {
  int64_t n_positions;
  int n_labels;
  const double* marginals;  // (N, K)
  const int32_t* labels;    // (N,) -1: not known, the position does not count
  const double* weights;    // (N,)
};

// The term of each position. terms: (N,)
void fill_accuracy_terms(const LabelledMarginals& table, double sharpness, double* terms,
                         Stop& stop);

// Derivatives of the sum with respect to the marginals. gradient: (N, K)
void fill_accuracy_gradient(const LabelledMarginals& table, double sharpness, double* gradient,
                            Stop& stop);

}  // namespace hedgerow
