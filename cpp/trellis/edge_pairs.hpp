// Sums of pair posteriors if arcs differ from position to position: several positions of a sequence
// are added at a time, so that each number of a table is read and written once for all of them.
#pragma once

#include <cstdint>

#include "simd.hpp"
#include "sum_grid.hpp"

namespace hedgerow {

// Pair posteriors in the layout that trees on label pairs learn from, kept until the trees are
// grown. The batch is a part of all M positions.
struct PairsByLabel {
  static constexpr size_t kFewestLabels = 8;  // with fewer they do not help, and are not filled

  // (K, M, K + 1) [label, position, label before], at most 1; the last is P(y_t = label) where a
  // sequence begins and there is no label before, otherwise 0.
  float* probs;
  int64_t n_positions;     // M
  int64_t first_position;  // of the batch
  // Rows of labels with a lower probability may be left out, unless they were observed.
  double trim;
  const int32_t* labels;  // (N,) of the batch
  double* observed;       // (N,) P(y_{t-1} = labels[t-1], y_t = labels[t])

  // (K + 1,) probabilities of a position of the batch and a label.
  float* at(int64_t position, int64_t label, int64_t n_labels) const {
    return probs + (label * n_positions + first_position + position) * (n_labels + 1);
  }
  bool wants(int64_t position, int64_t label, double marginal) const {
    return marginal > trim || labels[position] == label;
  }
  // Writes a position, from its pair posteriors (K, K) [label before, label].
  void write(int64_t position, const double* pairs, int64_t n_labels) const;
  // Writes the first position of a sequence; marginals: (K,)
  void write_first(int64_t position, const double* marginals, int64_t n_labels) const;
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
  // Adds a position. before, after: (stride,), which are copied; arcs: (stride, stride), which must
  // remain valid until flush(); gamma: that of its curvature. The pair (label_before, label),
  // unless either is negative, is nearly certain: its 1 - P is computed as the sum of all others,
  // since the difference would lose digits. marginals: (stride,) of the label before
  void add(const double* before, const double* arcs, const double* after, double gamma,
           int64_t label_before, int64_t label, const double* marginals);
  // Adds all positions to the tables.
  void flush(const PairTables& out);

 private:
  struct Position {
    const double* arcs;
    double gamma;
    int64_t likely;  // the pair that is nearly certain, j * stride + k; negative: none
    double others;   // the sum of all other pairs
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
