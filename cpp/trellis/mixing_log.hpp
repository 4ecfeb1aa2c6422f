// Mixing rates in log space: slower than by forward-backward in scaled space, but correct for any
// scores.
#pragma once

#include <cstdint>

#include "parallel.hpp"
#include "simd.hpp"
#include "sum_grid.hpp"
#include "trellis/chain.hpp"
#include "trellis/mixing_bounds.hpp"
#include "trellis/padded.hpp"

namespace hedgerow {

class LogMixing {
 public:
  // longest: positions of the longest sequence
  LogMixing(const ChainScores& scores, int64_t longest);

  // Fills the gammas of a sequence, and adds the curvature of its pairs to sums: (K, K), or null.
  void fill(int64_t sequence, const MixingBounds& out, const SumTable& sums, Stop& stop);

  // Throws std::invalid_argument for NaN, +inf, or a sequence without any path.
  void fill_rates(int64_t sequence, const MixingRates& rates, Stop& stop);
  // Adds sum_t weight edge_gammas[t] P (1 - P) for every label pair, P its probability at t, of the
  // sequence of the last fill_rates. edge_gammas: (T,), the first is not read; sums: (K, K)
  void add_pairs(int64_t sequence, const float* edge_gammas, double weight, const SumTable& sums,
                 Stop& stop);

 private:
  // Fills the messages in one direction, and the rates in the opposite one.
  void pass(int64_t sequence, bool forward, float* rates, Stop& stop);

  // (K, stride) arcs [label, label before] into a position of the batch, edges added; valid until
  // the next call.
  const double* arcs_back(int64_t position);
  // arcs: (K, stride)
  void transpose(const double* arcs);

  PaddedScores scores_;
  int stride_;
  PaddedVector to_previous_;  // (K, stride) see arcs_back; -inf in the padding
  PaddedVector befores_;      // (T, stride) log messages of the labels up to t, largest entry 0
  PaddedVector afters_;       // (T, stride) log messages of the labels from t on, largest entry 0
  PaddedVector rows_;         // (3, stride) scratch
  PaddedVector pairs_;        // (K, stride) scratch
};

}  // namespace hedgerow
