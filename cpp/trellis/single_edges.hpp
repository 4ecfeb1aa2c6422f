// Forward-backward of training, where pair scores differ from position to position: exponentials of
// these and the backward pass in single precision, so that marginals, pair posteriors and their
// sums have relative errors of about 1e-6. Alpha and log Z are computed in double precision.
#pragma once

#include <cstdint>
#include <vector>

#include "simd.hpp"
#include "simd_float.hpp"
#include "sum_grid.hpp"
#include "trellis/chain.hpp"

namespace hedgerow {

// Scratch memory of one thread.
class SingleEdges {
 public:
  // sixteen_at_once: with vectors of sixteen floats instead of eight, for the same bits
  SingleEdges(const ChainScores& scores, const ChainPosteriors& out,
              bool sixteen_at_once = adds_eight_at_once());

  // Computes all that is wanted of a sequence, but what is added to tables. False if it needs
  // double precision: scores lie too far apart or are not finite, or it is too long. Labels: (T,)
  bool fill(int64_t sequence, const int32_t* labels);
  // Of the sequence of the last fill().
  double log_z() const { return log_z_; }
  double log_likelihood() const { return log_likelihood_; }
  // Adds the sums of all sequences since the last call, and their curvature; (K, K) both, null: not
  // wanted
  void add_tables(double* pair_sums, double* pair_curvature);

 private:
  static constexpr int kBlock = 16;  // positions whose pairs are added at a time

  struct LikelyPair {
    int64_t before, label;  // negative: none is nearly certain
    double others;          // probability of all other pairs
  };
  // Vector: Floats or SixteenFloats
  template <class Vector>
  bool forward(int64_t sequence, const int32_t* labels);
  template <class Vector>
  void backward(int64_t sequence);
  // Computes the factors of a position. False if scores lie too far apart.
  template <class Vector>
  bool exponentiate(int64_t position, float* matrix, double& shift);
  // Adds the pairs of some positions of a sequence, and writes them by label.
  template <class Vector>
  void add_pairs(int64_t begin, int64_t first, int64_t end, double weight, double curved);
  // Clones, which cannot be templates.
  bool forward_by_eight(int64_t sequence, const int32_t* labels);
  bool forward_by_sixteen(int64_t sequence, const int32_t* labels);
  void backward_by_eight(int64_t sequence);
  void backward_by_sixteen(int64_t sequence);
  void add_pairs_by_eight(int64_t begin, int64_t first, int64_t end, double weight, double curved);
  void add_pairs_by_sixteen(int64_t begin, int64_t first, int64_t end, double weight,
                            double curved);
  double curvature_of(int64_t first, int64_t end, int64_t before, int64_t label) const;
  // The pair of two labels that ends at t, unless either is negative; others: probability of all
  // other labels before
  LikelyPair find_pair(int64_t t, int64_t before, double others, int64_t label) const;

  int64_t row(int64_t t) const { return t * floats_; }
  float* matrix(int64_t t) { return matrices_.data() + t * n_labels_ * floats_; }
  const float* matrix(int64_t t) const { return matrices_.data() + t * n_labels_ * floats_; }
  double prob(int64_t t, int64_t before, int64_t label) const;

  const ChainScores& scores_;
  const ChainPosteriors& out_;
  bool usable_ = false;
  bool sixteen_at_once_;
  int n_labels_, stride_, floats_;  // strides of rows of doubles and of floats
  double log_z_ = 0.0, log_likelihood_ = 0.0;
  double arc_shift_ = 0.0;       // the largest arc
  PaddedFloats arcs_;            // (K, K) exp(arcs - arc_shift) [label before, label]
  PaddedFloats factors_;         // (K, K) those of one position, and slack
  PaddedFloats matrices_;        // (T, K, floats) the same [label, label before], 0 in the padding
  PaddedVector nodes_;           // (T, stride) exp(nodes - maxima), and slack
  std::vector<double> maxima_;   // (T,)
  PaddedVector alphas_;          // (T, stride)
  PaddedVector rows_;            // (2, stride) scratch
  PaddedFloats single_rows_;     // (3, floats) scratch
  PaddedFloats before_, after_;  // (T, floats) alpha_t / n_t and v_t, see ScaledChain::backward
  std::vector<float> gammas_;    // (T,) of the pairs that end at a position
  std::vector<LikelyPair> likely_;  // (T,)
  PaddedVector sums_, curvature_;   // (K, floats) [label, label before]
};

}  // namespace hedgerow
