// How strongly the labels of a chain depend on each other: the curvature of Chen et al. (2015).
//
// The shares of a change that neighbours pass on (their Theorem 3.1),
//   alpha_{t,t+1} = 1 - sum_j min_i P(y_{t+1} = j | y_t = i), and alpha_{t,t-1} likewise,
// bound the Hessian of the log-likelihood by a multiple gamma of its diagonal p (1 - p):
//   sum_j |H_ij| <= gamma_i H_ii.
#pragma once

#include "parallel.hpp"
#include "trellis/chain.hpp"
#include "trellis/mixing_bounds.hpp"

namespace hedgerow {

// Runs forward-backward only for these bounds, see ChainPosteriors::mixing, or for few labels a
// separate pass in single precision.
void fill_mixing(const ChainScores& scores, const MixingBounds& out, int n_threads, Stop& stop);

}  // namespace hedgerow
