// Mixing rates in scaled probability space and single precision: fast, for most chains.
//
// Messages have a largest entry of 1; what is possible is never below kFloor, so that 0 always
// means impossible. What the floor adds to a sum is lost in rounding as long as the sum is at least
// kReliable; where it is not, the sequence is left to log space. Without forbidden arcs that never
// happens.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel.hpp"
#include "simd_float.hpp"
#include "sum_grid.hpp"
#include "trellis/chain.hpp"
#include "trellis/mixing_bounds.hpp"

namespace hedgerow {

inline constexpr float kFloor = 0x1p-86f;
inline constexpr double kLogFloor = -59.6;    // its logarithm, a little above
inline constexpr float kReliable = 0x1p-54f;  // 2^32 floors

// exp(arcs - their maximum) and its transpose, rows padded with zeros; computed once per batch.
// Of chains without edges: see mixing.hpp.
struct MixingArcs {
  explicit MixingArcs(const ChainScores& scores);

  int stride;
  bool usable;               // false: some lie too far apart
  PaddedFloats to_next;      // (K rounded up to 4, stride) [label before, label]
  PaddedFloats to_previous;  // (K, stride) [label, label before]
};

// How the probability of a position is shared among its labels, up to a common factor.
struct LabelShare {
  float sum = 0.0f;     // norm_t, of all labels
  int likely = -1;      // the label with more than kLikely of the sum, -1 if none has
  float others = 0.0f;  // the sum without that one
};

// Scratch memory of one task. With P_t(i, j) = before_{t-1}[i] to_next[i, j] after_t[j] / norm_t
// the curvature of pairs is, as
//   sum_t w_t P_t (1 - P_t) = to_next * linear - to_next^2 * square,
// found from two sums of outer products over some positions of a sequence, of w before and
// after / norm, and of w before^2 and (after / norm)^2. Where one pair is nearly certain that
// difference would cancel: the pairs that begin as it does are left out of the outer products and
// added one by one, with 1 - P of the one as the sum of all others.
class ScaledMixing {
 public:
  // longest: positions of the longest sequence; pairs: whether the curvatures of pairs are wanted;
  // they are rounded to a grid
  ScaledMixing(const ChainScores& scores, const MixingArcs& arcs, int64_t longest, bool pairs,
               const SumGrid& grid);

  // False when the sequence needs log space.
  bool fill_rates(int64_t sequence, const MixingRates& rates, Stop& stop);
  // Adds the pairs of the sequence of the last fill_rates. edge_gammas: (T,), the first is not read
  void add_pairs(int64_t length, const float* edge_gammas, double weight);

  // Adds the curvature of the pairs of all sequences that add_pairs has seen to sums: (K, K)
  void add_pair_curvature(double* sums) const;

 private:
  bool fill_factors(const double* nodes, int64_t length);
  bool backward(int64_t length, float* to_next, Stop& stop);
  bool forward(int64_t length, float* to_previous, Stop& stop);
  void add_waiting();

  const ChainScores& scores_;
  const MixingArcs& arcs_;
  bool pairs_;
  SumGrid grid_;
  int n_waiting_ = 0;
  PaddedFloats befores_;  // (T, stride) exp(nodes), then the messages of the labels up to t
  PaddedFloats afters_;   // (T, stride) messages of the labels from t on
  std::vector<LabelShare> shares_;  // (T,)
  PaddedFloats rows_;               // three padded scratch rows
  PaddedFloats waiting_;            // (4, kMixingRows, stride) outer products not yet added
  PaddedVector curvature_;          // (K rounded up to 4, stride) of pairs
};

}  // namespace hedgerow
