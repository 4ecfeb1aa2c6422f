// The tangent of a chain in scaled probability space.
//
// The forward pass is that of scaled.hpp, with a second row in addition to alpha. The backward pass
// needs no beta: the marginals p_t are known, and with m_t[k] = sum_j alpha_{t-1}[j] psi[j, k], psi
// = exp(arcs),
//   P(y_{t-1} = j, y_t = k) = alpha_{t-1}[j] psi[j, k] p_t[k] / m_t[k].
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"
#include "sum_grid.hpp"
#include "trellis/chain.hpp"
#include "trellis/scaled.hpp"
#include "trellis/tangent.hpp"

namespace hedgerow {

// ScaledChain's marginals are products of two numbers of at least kSmallest each, so that smaller
// ones come from log space. Dividing these by m_t could leave the range of a double.
inline constexpr double kSmallestMarginal = 1e-285;

// The arcs' factors, and their products with the direction of the arcs; computed once per batch.
// With edges they differ from position to position, and are not kept here.
struct MovedArcs {
  // moves: (K, K) or null
  MovedArcs(const ChainScores& scores, const double* moves);

  ScaledArcs scaled;
  const double* moves;
  PaddedVector to_next;      // (stride, stride) psi * moves, empty without moves
  PaddedVector to_previous;  // (K, stride) its transpose
};

// Scratch memory of one task, for sequences of at most `longest` positions. pair_sums: the table
// that add_pair_sums will fill, or null
class ScaledTangent {
 public:
  ScaledTangent(const ChainScores& scores, const MovedArcs& arcs, EdgeFactors& edges,
                const Direction& direction, int64_t longest, const SumTable& pair_sums);

  // Fills slopes (T, K) with a_t, up to a constant; false where the sequence needs log space.
  bool forward(int64_t sequence, double* slopes, Stop& stop);
  // After forward: turns slopes into derivatives of the marginals, adds those of the pair
  // posteriors to the pair sums, fills `pairs` (T, K, K) where given.
  void backward(int64_t sequence, double* slopes, double* pairs, Stop& stop);

  // Adds the derivatives of the pair posteriors of all calls of backward(). pair_sums: (K, K)
  void add_pair_sums(double* pair_sums) const;

 private:
  struct Rows;  // of one sequence
  struct Arcs;  // into one position

  Rows rows_of(int64_t sequence) const;
  Arcs arcs_into(int64_t t);

  const ChainScores& scores_;
  const MovedArcs& arcs_;
  EdgeFactors& edges_;
  const Direction& direction_;
  SumGrid grid_;
  int64_t block_rows_;
  PaddedVector block_;          // (block_rows, stride) factors exp(nodes) of a block of positions
  std::vector<double> maxima_;  // (block_rows,) what was subtracted from their nodes
  std::unique_ptr<double[]> kept_;  // memory of the two arrays that follow
  double* alphas_ = nullptr;        // (T, stride)
  double* ratios_ = nullptr;        // (T, stride) p_t / m_t
  std::vector<double> means_;       // (T,) mean of v_t and u at t
  PaddedVector rows_;               // (4, stride) scratch
  PaddedVector moved_;              // (stride, stride) psi * moves of a position, with edges only
  PaddedVector waiting_;            // (4, kWaitingRows, stride) of outer products not yet added
  PaddedVector sums_;               // (stride, stride) of pairs; empty if they are not wanted
};

}  // namespace hedgerow
