// Bounds on the curvature of the likelihood: how they are computed, and where kernels write them.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hedgerow {

// What fill_mixing reads and fills. edge_gammas and pair_curvature may be null.
struct MixingBounds {
  float* node_gammas;      // (N,) of all events y_t = k
  float* edge_gammas;      // (N,) of all events y_{t-1} = j, y_t = k; 0 where a sequence begins
  double* pair_curvature;  // (K, K) sum over t of edge_gammas[t] P (1 - P), P that of (j, k) at t
  const double* weights;   // (S,) weight of each sequence in pair_curvature; null: 1
  double bound = 0.0;      // upper bound on the total weight of all positions, see SumGrid

  double weight(int64_t sequence) const { return weights == nullptr ? 1.0 : weights[sequence]; }
};

// Rates of one sequence of T positions.
struct MixingRates {
  float* to_next;      // (T,) alpha_{t,t+1}, 0 at the last position
  float* to_previous;  // (T,) alpha_{t,t-1}, 0 at the first position
};

// Theorem 4.1: gamma_t = 2 (1 + beta_{t-1->t} + beta_{t+1->t}), at most 2 n, as every rate is at
// most 1.
inline float node_gamma(float from_previous, float from_next) {
  return 2.0f * (1.0f + (from_previous + from_next));
}

// Theorem 4.2, for the pair (t-1, t): gamma_t = 2 (3 + beta_{t-2->t-1} + beta_{t+1->t}). It counts
// one distance for each neighbouring pair, even where there is none, and is at most 2 (n - 1),
// since there are n - 1 pairs.
inline float edge_gamma(float from_previous, float from_next, int64_t length) {
  const float most = 2.0f * static_cast<float>(length - 1);
  return std::min(most, 2.0f * (3.0f + (from_previous + from_next)));
}

// Turns rates into messages (Eq. 17),
//   to_next[t]     = beta_{t+1->t} = alpha_{t,t+1} (1 + beta_{t+2->t+1}),
//   to_previous[t] = beta_{t-1->t} = alpha_{t,t-1} (1 + beta_{t-2->t-1}),
// and fills the gammas of a sequence, (T,) each.
inline void fill_gammas(int64_t length, const MixingRates& rates, float* node_gammas,
                        float* edge_gammas) {
  for (int64_t t = length - 2; t >= 0; --t) rates.to_next[t] *= 1.0f + rates.to_next[t + 1];
  for (int64_t t = 1; t < length; ++t) rates.to_previous[t] *= 1.0f + rates.to_previous[t - 1];
  for (int64_t t = 0; t < length; ++t)
    node_gammas[t] = node_gamma(rates.to_previous[t], rates.to_next[t]);
  if (length > 0) edge_gammas[0] = 0.0f;
  for (int64_t t = 1; t < length; ++t)
    edge_gammas[t] = edge_gamma(rates.to_previous[t - 1], rates.to_next[t], length);
}

}  // namespace hedgerow
