// The tangent of a chain in scaled probability space, for arcs that are the same at every position.
//
// Going forward it is scaled.hpp with a second row beside alpha. The way back needs no beta: the
// marginals p_t are known, and with m_t[k] = sum_j alpha_{t-1}[j] psi[j, k], psi = exp(arcs),
//   P(y_{t-1} = j, y_t = k) = alpha_{t-1}[j] psi[j, k] p_t[k] / m_t[k].
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"
#include "trellis/chain.hpp"
#include "trellis/scaled.hpp"
#include "trellis/tangent.hpp"

namespace hedgerow {

// Smaller marginals come from log space: those of ScaledChain are products of two numbers that it
// keeps. Their quotients by such numbers may be too small for a double.
inline constexpr double kSmallestMarginal = 1e-285;

// The arcs' factors, and their products with the moves of the arcs; made once a batch.
struct MovedArcs {
  // moves: (K, K) or null
  MovedArcs(const ChainScores& scores, const double* moves);

  ScaledArcs scaled;
  const double* moves;
  PaddedVector to_next;      // (K, stride) psi * moves, empty without moves
  PaddedVector to_previous;  // (K, stride) its transpose
};

// One task's scratch, for sequences of at most `longest` positions.
class ScaledTangent {
 public:
  ScaledTangent(const ChainScores& scores, const MovedArcs& arcs, const Direction& direction,
                int64_t longest, bool pair_sums);

  // Fills slopes (T, K) with a_t, up to a constant; false where the sequence needs log space.
  bool forward(int64_t sequence, double* slopes, Stop& stop);
  // After forward: turns slopes into derivatives of the marginals, adds those of the pair
  // posteriors to the pair sums, fills `pairs` (T, K, K) where given.
  void backward(int64_t sequence, double* slopes, double* pairs, Stop& stop);

  // Adds the derivatives of all sequences that went backward. pair_sums: (K, K)
  void add_pair_sums(double* pair_sums) const;

 private:
  struct Rows;  // of one sequence

  Rows rows_of(int64_t sequence) const;

  const ChainScores& scores_;
  const MovedArcs& arcs_;
  const Direction& direction_;
  int64_t block_rows_;
  PaddedVector block_;          // (block_rows, stride) factors exp(nodes) of a block of positions
  std::vector<double> maxima_;  // (block_rows,) what was subtracted from their nodes
  std::unique_ptr<double[]> kept_;  // memory of the two rows of each position that follow
  double* alphas_ = nullptr;        // (T, stride)
  double* ratios_ = nullptr;        // (T, stride) p_t / m_t
  std::vector<double> means_;       // (T,) of the moves at a position
  PaddedVector rows_;               // four padded scratch rows
  PaddedVector waiting_;            // outer products not yet added, by kind
  PaddedVector outer_;  // (stride, stride) their sums; empty when no pair sums are wanted
  PaddedVector plain_;  // (stride, stride) those of the pair posteriors, with moves of arcs
};

}  // namespace hedgerow
