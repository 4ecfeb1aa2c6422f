// Forward-backward in scaled probability space: the hot kernel, for arcs that are the same at every
// position.
//
// It gives full relative precision or refuses. Every number it keeps is either exactly 0 because no
// path leads there, or at least kSmallest: sums of positive numbers lose nothing, and products of
// two such numbers stay within the range of a double. When a reachable number falls below kSmallest
// the sequence is left to log space.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"
#include "trellis/chain.hpp"

namespace hedgerow {

inline constexpr double kSmallest = 1e-140;

// exp(arcs - shift) and its transpose, rows padded with zeros; made once a batch.
struct ScaledArcs {
  explicit ScaledArcs(const ChainScores& scores);

  int stride;
  double shift = 0.0;        // the largest arc
  bool usable;               // false: arcs differ by position, or lie too far apart
  bool holes = false;        // some arc is -inf
  PaddedVector to_next;      // (K, stride) [label before, label]
  PaddedVector to_previous;  // (K, stride) [label, label before]
};

// One task's scratch. Pair posteriors are kept as a sum of outer products, from which they follow:
//   sum_t P(y_{t-1} = j, y_t = k) = to_next[j, k] * outer[j, k].
class ScaledChain {
 public:
  ScaledChain(const ChainScores& scores, const ScaledArcs& arcs, bool pair_sums);

  // Both return false when the sequence needs log space.
  // Keeps the rows of alpha when `alphas` (T, K) is given, sums the path when `labels` (T,) are.
  bool forward(int64_t sequence, const int32_t* labels, double* alphas, Stop& stop);
  // After forward: turns `alphas` into marginals, adds `weight` times the pair posteriors to the
  // pair sums, fills `pairs` where wanted.
  bool backward(int64_t sequence, double* alphas, double weight, PairRows& pairs, Stop& stop);

  // Of the sequence that went forward last.
  double log_z() const { return log_z_; }
  double log_likelihood() const { return log_likelihood_; }

  // Adds the pair posteriors of all sequences that went backward. pair_sums: (K, K)
  void add_pair_sums(double* pair_sums) const;

 private:
  const ChainScores& scores_;
  const ScaledArcs& arcs_;
  double log_z_ = 0.0;
  double log_likelihood_ = 0.0;
  int64_t block_rows_;
  PaddedVector block_;          // (block_rows, stride) factors exp(nodes) of a block of positions
  std::vector<double> maxima_;  // (block_rows,) what was subtracted from their nodes
  PaddedVector rows_;           // four padded scratch rows
  PaddedVector waiting_;        // outer products not yet added: left rows, then right rows
  PaddedVector outer_;          // empty when no pair sums are wanted
  PaddedVector outer_before_;   // to go back to when a sequence turns out to need log space
};

}  // namespace hedgerow
