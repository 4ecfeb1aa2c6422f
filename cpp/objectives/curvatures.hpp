// Curvatures: a bound on the second derivatives of the negative log-likelihood.
#pragma once

#include <cstdint>

#include "parallel.hpp"

namespace hedgerow {

// Probabilities of K labels at N positions, and the gammas of labels.
struct CurvatureTable {
  int64_t n_positions;
  int n_labels;
  const double* probabilities;  // (N, K) p
  const float* gammas;          // (N, K), or (N,) for all labels alike
  bool gammas_by_label;
  const double* scales;  // (N,) weight of each position; null: all 1
  float rate;            // how much of each gamma counts,
  float modest;          // where it is otherwise at most this
};

// out (N, K) = scale * max(g p (1 - p), 1e-16) with g = min(max(rate * gamma, modest), gamma):
// labels that are certain have some curvature too.
void fill_curvatures(const CurvatureTable& table, float* out, int n_threads, Stop& stop);

}  // namespace hedgerow
