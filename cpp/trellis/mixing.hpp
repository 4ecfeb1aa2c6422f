// How far the labels of a chain depend on each other: the curvature of Chen et al. (2015).
//
// The rates at which neighbours forget each other (their Theorem 3.1),
//   alpha_{t,t+1} = 1 - sum_j min_i P(y_{t+1} = j | y_t = i), and alpha_{t,t-1} likewise,
// bound the Hessian of the log-likelihood by a multiple gamma of its diagonal p (1 - p):
//   sum_j |H_ij| <= gamma_i H_ii.
// All of it is estimated in single precision.
#pragma once

#include "parallel.hpp"
#include "trellis/chain.hpp"

namespace hedgerow {

// What fill_mixing reads and fills. edge_gammas and pair_curvature may be null.
struct MixingBounds {
  float* node_gammas;      // (N,) of all events y_t = k
  float* edge_gammas;      // (N,) of all events y_{t-1} = j, y_t = k; 0 where a sequence begins
  double* pair_curvature;  // (K, K) sum over t of edge_gammas[t] P (1 - P), P that of (j, k) at t
  const double* weights;   // (S,) weight of each sequence in pair_curvature; null: 1

  double weight(int64_t sequence) const { return weights == nullptr ? 1.0 : weights[sequence]; }
};

void fill_mixing(const ChainScores& scores, const MixingBounds& out, int n_threads, Stop& stop);

}  // namespace hedgerow
