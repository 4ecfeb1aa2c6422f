// The tangent of forward-backward: how all marginals change when the scores change along a
// direction.
//
// With V(y) = sum_t v_t[y_t] + sum over the arcs taken of u[arc], how much the score of a labelling
// increases along the direction (v, u), the derivative of a probability is a covariance,
//   dP(event) = P(event) (E[V | event] - E[V]).
// For the label at a position it needs two conditional means,
//   a_t[k] = E[V up to position t | y_t = k] and b_t[k] = E[V after t | y_t = k],
// each of them up to a constant: dP(y_t = k) = P(y_t = k) (a_t[k] + b_t[k] - mean), where the mean
// is that over k under the marginals. At each position the mean of v_t under the marginals is
// subtracted from them, so that they do not grow with the length, and no digits are lost where v_t
// is large because P(y_t = k) is small. a and b are the alpha* and beta* of Gross et al. (2006),
// Eqs. 16 to 22, divided by alpha and beta.
#pragma once

#include <cstdint>

#include "parallel.hpp"
#include "trellis/chain.hpp"

namespace hedgerow {

struct AutomatonScores;

// The direction along which the scores change, and the marginals of the scores. The direction is
// finite; where a label's marginal is 0 it is not read.
struct Direction {
  const double* marginals;  // (N, K) P(y_t = k)
  const double* nodes;      // (N, K) v
  const double* arcs;       // (K, K), or (A,) with an automaton: u; null: 0
};

// Derivatives of the fields of ChainPosteriors; every pointer but marginals may be null.
struct ChainTangents {
  double* marginals;   // (N, K)
  double* pair_sums;   // (K, K)
  double* pairs;       // (N, K, K)
  double bound = 0.0;  // upper bound on the sum of the sizes of all terms, see SumGrid
};

// Skips sequences with extreme scores, or without any path. refused: (S,) set to 1 for these,
// otherwise 0.
void fill_tangents(const ChainScores& scores, const Direction& direction, const ChainTangents& out,
                   uint8_t* refused, int n_threads, Stop& stop);

// Derivatives of the fields of AutomatonPosteriors; every pointer but marginals may be null.
struct AutomatonTangents {
  double* marginals;      // (N, K)
  double* arc_sums;       // (A,)
  double* arc_marginals;  // (N, A)
  double* pairs;          // (N, K, K)
  double bound = 0.0;     // upper bound on the sum of the sizes of all terms, see SumGrid
};

// For any scores. wanted: (S,) 0 for the sequences to skip; null: none
void fill_tangents(const AutomatonScores& scores, const Direction& direction, const uint8_t* wanted,
                   const AutomatonTangents& out, int n_threads, Stop& stop);

}  // namespace hedgerow
