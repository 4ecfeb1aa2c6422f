// Forward-backward in scaled probability space: the main kernel.
//
// It has full relative precision, or refuses a sequence. Every number it keeps is either exactly 0
// because no path leads there, or at least kSmallest: sums of positive numbers lose nothing, and
// products of two such numbers stay within the range of a double. When a reachable number falls
// below kSmallest the sequence is left to log space.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"
#include "simd_float.hpp"
#include "sum_grid.hpp"
#include "trellis/chain.hpp"
#include "trellis/edge_factors.hpp"
#include "trellis/edge_pairs.hpp"

namespace hedgerow {

inline constexpr double kSmallest = 1e-140;

// exp(arcs - shift) and its transpose, rows padded with zeros; computed once per batch. Both are
// empty where there are edges: the arcs are then different at every position, see EdgeFactors.
struct ScaledArcs {
  explicit ScaledArcs(const ChainScores& scores);

  // Fills the tables of floats, for training without edges.
  void fill_single();

  int stride;
  double shift = 0.0;               // the largest arc
  bool usable;                      // false: all are -inf, or they are too far apart
  bool holes = false;               // some arc is -inf
  PaddedVector to_next;             // (stride, stride) [label before, label]
  PaddedVector to_previous;         // (K, stride) [label, label before]
  bool single = false;              // whether floats are filled, and no number is too small for one
  int floats = 0;                   // their stride
  PaddedFloats single_to_next;      // (K, floats) [label before, label]
  PaddedFloats single_to_previous;  // (K, floats) [label, label before]
};

// Sums over pairs of labels, and their curvature: tables (K rounded up, stride), empty if they are
// not wanted.
class PairTotals {
 public:
  PairTotals(int n_labels, int stride, bool sums, bool curvature);

  PairTables tables(double weight, SumGrid sum_grid, SumGrid curvature_grid);
  // Keeps a copy, which is restored if a sequence turns out to need another kernel.
  void keep();
  void restore();
  // Adds what they contain to tables (K, K), null if they are not wanted.
  void add_sums(double* out) const { add(sums_, out); }
  void add_curvature(double* out) const { add(curvature_, out); }

 private:
  void add(const PaddedVector& table, double* out) const;

  int n_labels_, stride_;
  PaddedVector sums_, curvature_, sums_before_, curvature_before_;
};

// Scratch memory of one task. The pair posteriors of some positions of a sequence are summed up as
// outer products, sum_t P(y_{t-1} = j, y_t = k) = to_next[j, k] * outer[j, k], where there are no
// edges. Mixing rates, see mixing.hpp, are by-products of the two passes.
//
// Only training needs mixing rates, so the backward pass is then in single precision if possible:
// marginals, pair sums and curvatures have relative errors of about 1e-6. The loss is computed from
// the forward pass, which is always in double precision. The curvature of pairs comes from two sums
// of outer products,
//   sum_t w_t P_t (1 - P_t) = to_next * linear - to_next^2 * square.
// Where one pair is nearly certain, digits of that difference would cancel. So the pairs that begin
// with the same label are left out of the outer products and added one by one, and 1 - P of the
// nearly certain pair is computed as the sum of all others.
class ScaledChain {
 public:
  ScaledChain(const ChainScores& scores, const ScaledArcs& arcs, EdgeFactors& edges,
              const ChainPosteriors& out);

  // Both return false if the sequence needs log space.
  // Computes log Z, the log-likelihood of labels (T,) if given, and fills alphas (T, K) if given.
  bool forward(int64_t sequence, const int32_t* labels, double* alphas, Stop& stop);
  // After forward: turns `alphas` into marginals, adds `weight` times the pair posteriors to the
  // pair sums, fills `pairs` where wanted, and the gammas and the curvature of pairs.
  bool backward(int64_t sequence, double* alphas, double weight, PairRows& pairs, Stop& stop);
  // The same in single precision, which computes all that is wanted if gives_all_in_single(). False
  // if the sequence needs double precision: then forward() has to be repeated.
  bool backward_in_single(int64_t sequence, double* alphas, double weight, Stop& stop);
  bool gives_all_in_single() const { return single_; }

  // Of the sequence of the last forward().
  double log_z() const { return log_z_; }
  double log_likelihood() const { return log_likelihood_; }

  // Adds the pair posteriors of all calls of backward(). pair_sums: (K, K)
  void add_pair_sums(double* pair_sums) const;
  // Likewise the curvature of pairs. pair_curvature: (K, K)
  void add_pair_curvature(double* pair_curvature) const;

 private:
  // The passes with vectors of two sizes, and as kernels of eight_wide_clone.
  template <class Wide>
  void run_forward(int64_t sequence, const int32_t* labels, double* alphas, Stop& stop, bool& done);
  template <class Wide>
  void run_backward(int64_t sequence, double* alphas, double weight, PairRows& pairs, Stop& stop,
                    bool& done);
  template <class Wide>
  void run_backward_in_single(int64_t sequence, double* alphas, double weight, Stop& stop,
                              bool& done);
  template <class Wide>
  HEDGEROW_INLINE static void forward_with(ScaledChain& chain, int64_t sequence,
                                           const int32_t* labels, double* alphas, Stop& stop,
                                           bool& done) {
    chain.run_forward<Wide>(sequence, labels, alphas, stop, done);
  }
  template <class Wide>
  HEDGEROW_INLINE static void backward_with(ScaledChain& chain, int64_t sequence, double* alphas,
                                            double weight, PairRows& pairs, Stop& stop,
                                            bool& done) {
    chain.run_backward<Wide>(sequence, alphas, weight, pairs, stop, done);
  }
  template <class Wide>
  HEDGEROW_INLINE static void backward_in_single_with(ScaledChain& chain, int64_t sequence,
                                                      double* alphas, double weight, Stop& stop,
                                                      bool& done) {
    chain.run_backward_in_single<Wide>(sequence, alphas, weight, stop, done);
  }
  // Computes the factors of the block of positions from `first` on.
  void fill_block(int64_t sequence, int64_t first);

  const ChainScores& scores_;
  const ScaledArcs& arcs_;
  EdgeFactors& edges_;
  const MixingBounds* mixing_;  // null: not wanted
  bool single_;
  SumGrid sum_grid_, curvature_grid_;
  double log_z_ = 0.0;
  double log_likelihood_ = 0.0;
  int64_t block_rows_;
  PaddedVector block_;          // (block_rows, stride) factors exp(nodes) of a block, and slack
  std::vector<double> maxima_;  // (block_rows,) what was subtracted from their nodes
  PaddedVector rows_;           // (6, stride) scratch
  PaddedVector waiting_;        // (2, kWaitingRows, stride) factors of outer products not yet added
  WaitingPairs waiting_pairs_;  // the same where there are edges
  PaddedFloats single_rows_;    // the same in single precision, see SingleRows, and two rows
  PairTotals totals_, single_totals_;  // of backward() and of backward_in_single()
};

}  // namespace hedgerow
