// Pair posteriors where arcs differ from position to position: what is made of them, for several
// positions of a sequence at a time, so that each number of a table is read and written once for
// all of them.
#pragma once

#include <cstdint>

#include "simd.hpp"
#include "sum_grid.hpp"

namespace hedgerow {

// Pair posteriors as trees on label pairs learn from them. A sequence's first position has any
// numbers.
struct PairsByLabel {
  static constexpr size_t kFewestLabels = 8;  // with fewer they are not worth while

  float* probs;           // (N, K, K rounded up to kLanes) [label, label before], at most 1
  const int32_t* labels;  // (N,)
  double* observed;       // (N,) P(y_{t-1} = labels[t-1], y_t = labels[t])

  // (K, K rounded up), those of a position of the batch.
  float* at(int64_t position, int n_labels) const {
    return probs + position * n_labels * padded(n_labels);
  }
  // From pair posteriors (K, K) [label before, label].
  void write(int64_t position, const double* pairs, int n_labels) const;
};

// Tables that pair posteriors P are added to; null: not wanted. Sums over several positions are
// rounded to a grid.
struct PairTables {
  double* sums;  // (stride, stride) weight P is added
  double weight;
  SumGrid sum_grid;
  double* curvature;  // (stride, stride) gamma P (1 - P) is added
  SumGrid curvature_grid;

  bool wanted() const { return sums != nullptr || curvature != nullptr; }
};

// Positions of a sequence whose pair posteriors are P[j, k] = before[j] * arcs[j, k] * after[k].
class WaitingPairs {
 public:
  static constexpr int kMost = 8;  // positions at a time

  explicit WaitingPairs(int n_labels)
      : n_labels_(n_labels), stride_(padded(n_labels)), rows_(size_t{2} * kMost * stride_) {}

  bool full() const { return n_ == kMost; }
  void clear() { n_ = 0; }
  // A position; before, after: (stride,), which are copied; arcs: (stride, stride), which must stay
  // there; gamma: of its curvature. The pair (label_before, label), unless either is negative, is
  // nearly certain: its 1 - P is computed as the sum of all others, since the difference would lose
  // digits. marginals: (stride,) of the label before; by_label: (K, stride) see
  // PairsByLabel, null: not wanted
  void add(const double* before, const double* arcs, const double* after, double gamma,
           int64_t label_before, int64_t label, const double* marginals, float* by_label);
  // Adds all of them to the tables, and writes those that are wanted by label.
  void flush(const PairTables& out);

 private:
  struct Position {
    const double* arcs;
    double gamma;
    int64_t likely;  // the pair that is nearly certain, j * stride + k; negative: none
    double others;   // the sum of all other pairs
    float* by_label;
  };
  const double* before(int w) const { return rows_.data() + int64_t{2} * w * stride_; }
  const double* after(int w) const { return before(w) + stride_; }
  double prob(int w, int64_t pair) const {
    return before(w)[pair / stride_] * positions_[w].arcs[pair] * after(w)[pair % stride_];
  }
  // The curvature of a pair that is nearly certain somewhere, over all positions.
  double curvature_of(int64_t pair) const;
  template <bool kCurvature>
  void add_tiles(const PairTables& out) const;
  void add_all(const PairTables& out) const;

  int n_labels_, stride_;
  int n_ = 0;
  Position positions_[kMost];
  PaddedVector rows_;  // (kMost, 2, stride) before and after
};

}  // namespace hedgerow
