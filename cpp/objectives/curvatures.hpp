// Curvatures: a bound on the second derivatives of the negative log-likelihood.
#pragma once

#include <cstdint>

#include "parallel.hpp"
#include "simd.hpp"

namespace hedgerow {

// How gammas are used for the curvatures of labels with probability p,
//   scale * max(g p (1 - p), 1e-16) with g = min(max(rate * gamma, modest), gamma):
// labels that are certain have some curvature too.
struct CurvatureRule {
  static constexpr double kSmallest = 1e-16;
  float rate;    // factor of gammas
  float modest;  // gammas up to this are used unchanged, and larger ones are not reduced below it

  // Uses comparisons, since clones may not inline std::max and std::min.
  HEDGEROW_INLINE float curvature(double p, float full, double scale) const {
    const float raised = rate * full < modest ? modest : rate * full;
    const double gamma = full < raised ? full : raised;
    const double found = gamma * p * (1.0 - p);
    return static_cast<float>(scale * (found < kSmallest ? kSmallest : found));
  }
};

// Probabilities of K labels at N positions, and the gammas of labels.
struct CurvatureTable {
  int64_t n_positions;
  int n_labels;
  const double* probabilities;  // (N, K) p
  const float* gammas;          // (N, K), or (N,) for all labels alike
  bool gammas_by_label;
  const double* scales;  // (N,) weight of each position; null: all 1
  CurvatureRule rule;
};

// out: (N, K)
void fill_curvatures(const CurvatureTable& table, float* out, int n_threads, Stop& stop);

}  // namespace hedgerow
