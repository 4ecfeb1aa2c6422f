// Sums of gamma P (1 - P) over the edges of tree-shaped graphs, P the posteriors of label pairs.
//
// Where all edges have the same weights w, P[i, k] = left[i] w[i, k] right[k], and the sums are
//   w sum of gamma left^T right - w^2 sum of gamma (left^2)^T (right^2).
// Where P is nearly 1, the difference 1 - P would lose digits. This can only happen for the pair of
// two labels that are both nearly certain; the row of that pair is added separately.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "simd.hpp"
#include "sum_grid.hpp"
#include "trellis/tree_graph_edge_rows.hpp"
#include "trellis/tree_graph_states.hpp"

namespace hedgerow {
namespace {

class PairCurvature {
 public:
  // First order. same_weights: whether add() will be called
  PairCurvature(const GraphStates& states, const SumGrid& grid, bool same_weights)
      : states_(states),
        stride_(states.stride()),
        grid_(grid),
        sums_(static_cast<size_t>(stride_) * stride_),
        rows_(same_weights ? 4 : 0, stride_) {}

  void open(const GraphOrder& order) {
    std::fill(sums_.begin(), sums_.end(), 0.0);
    rows_.open(order);
  }

  // Stores which label of each node is nearly certain, if one is. reach, belief: rows of nodes
  // first .. end-1; norms: of all nodes
  HEDGEROW_CLONES void find_likely(int64_t first, int64_t end, const double* reach,
                                   const double* belief, const double* norms) {
    if (std::ssize(likely_) < end) likely_.resize(end);
    for (int64_t i = first; i < end; ++i, reach += stride_, belief += stride_) {
      Lanes largest = broadcast(0.0);
      for (int k = 0; k < stride_; k += kLanes)
        largest = maximum(load(reach + k) * load(belief + k), largest);
      const double top = max_lane(largest);
      likely_[i] = {};
      if (!(top > kCertain * norms[i])) continue;
      for (int k = 0; k < states_.n_labels(); ++k) {
        const double prob = reach[k] * belief[k];
        if (prob == top)
          likely_[i].label = k;
        else
          likely_[i].others += prob / norms[i];
      }
    }
  }

  // Adds the edge between a node and its parent: the row of a likely pair at once, all others with
  // finish(). False, and nothing is added, if numbers are too large to be squared.
  HEDGEROW_CLONES bool add(int64_t node, int64_t parent, const double* outside,
                           const double* belief, double norm, double gamma) {
    const Lanes per_norm = broadcast(1.0 / norm), factor = broadcast(gamma);
    double *left = rows_.row(kLeft, node), *left_squares = rows_.row(kLeftSquares, node);
    double *right = rows_.row(kRight, node), *right_squares = rows_.row(kRightSquares, node);
    Lanes largest = broadcast(0.0);
    for (int k = 0; k < stride_; k += kLanes) {
      const Lanes from = load(outside + k) * per_norm, to = load(belief + k);
      largest = maximum(from, largest);
      store(left + k, factor * from);
      store(left_squares + k, factor * from * from);
      store(right + k, to);
      store(right_squares + k, to * to);
    }
    if (!(max_lane(largest) < kTooLarge)) {
      for (double* row : {left, left_squares}) std::fill(row, row + stride_, 0.0);
      return false;
    }
    const int j = likely_[parent].label, k = likely_[node].label;
    if (j >= 0 && k >= 0) {
      const int64_t place = static_cast<int64_t>(j) * stride_ + k;
      const double known = sums_[place], from = outside[j] / norm;
      const double prob = from * states_.matrix()[place] * belief[k];
      add_row(from, j, belief, gamma);
      left[j] = left_squares[j] = 0.0;
      // 1 - P of the pair (j, k): the probability of other labels here, and of k after labels other
      // than j.
      const double others =
          gamma * likely_[node].others +
          sum_products(left, states_.transposed() + static_cast<int64_t>(k) * stride_) * belief[k];
      sums_[place] = known + grid_.round(prob * others);
    }
    return true;
  }

  // Adds the remaining rows of all edges of add().
  HEDGEROW_CLONES void finish() {
    const double* weights = states_.matrix();
    rows_.sum(kLeft, kRight, [&](int64_t place, Lanes outer) {
      store(&sums_[place], load(&sums_[place]) + grid_.round(load(weights + place) * outer));
    });
    rows_.sum(kLeftSquares, kRightSquares, [&](int64_t place, Lanes outer) {
      const Lanes weight = load(weights + place);
      store(&sums_[place], load(&sums_[place]) - grid_.round(weight * weight * outer));
    });
  }

  // Adds an edge with any weights. probs: (stride, stride), which is changed; 1 - p of a likely
  // pair is the sum of the others
  HEDGEROW_CLONES void add_probs(double gamma, PaddedVector& probs) {
    const Lanes scale = broadcast(gamma), one = broadcast(1.0);
    Lanes largest = broadcast(0.0);
    const auto size = static_cast<int64_t>(probs.size());
    for (int64_t p = 0; p < size; p += kLanes) {
      const Lanes each = load(&probs[p]);
      store(&sums_[p], load(&sums_[p]) + grid_.round(scale * each * (one - each)));
      largest = maximum(each, largest);
    }
    const double top = max_lane(largest);
    if (top < 0.5) return;
    const auto likely = std::find(probs.begin(), probs.end(), top) - probs.begin();
    probs[likely] = 0.0;
    Lanes others = broadcast(0.0);
    for (int64_t p = 0; p < size; p += kLanes) others += load(&probs[p]);
    sums_[likely] +=
        grid_.round(gamma * top * sum_lanes(others)) - grid_.round(gamma * top * (1.0 - top));
  }

  // Adds the sums to curvature (K, K).
  void add_to(double* curvature) const {
    const int64_t n_labels = states_.n_labels();
    for (int64_t j = 0; j < n_labels; ++j)
      for (int64_t k = 0; k < n_labels; ++k) curvature[j * n_labels + k] += sums_[j * stride_ + k];
  }

 private:
  enum Kinds { kLeft, kRight, kLeftSquares, kRightSquares };
  static constexpr double kCertain = 0.9;
  static constexpr double kTooLarge = 1e100;

  struct LikelyLabel {
    int label = -1;
    double others = 0.0;  // the probability of all other labels
  };

  HEDGEROW_INLINE double sum_products(const double* a, const double* b) const {
    Lanes sums = broadcast(0.0);
    for (int k = 0; k < stride_; k += kLanes) sums += load(a + k) * load(b + k);
    return sum_lanes(sums);
  }

  // Adds gamma p (1 - p) of the pairs (j, .), where p = scale w[j, .] right.
  HEDGEROW_INLINE void add_row(double scale, int64_t j, const double* right, double gamma) {
    const double* weights = states_.matrix() + j * stride_;
    double* sums = sums_.data() + j * stride_;
    for (int c = 0; c < stride_; c += kLanes) {
      const Lanes probs = broadcast(scale) * load(weights + c) * load(right + c);
      const Lanes spread = broadcast(gamma) * probs * (broadcast(1.0) - probs);
      store(sums + c, load(sums + c) + grid_.round(spread));
    }
  }

  const GraphStates& states_;
  int stride_;
  SumGrid grid_;
  PaddedVector sums_;                // (stride, stride)
  EdgeRows rows_;                    // of add(): see Kinds; left rows times gamma
  std::vector<LikelyLabel> likely_;  // of each node
};

}  // namespace
}  // namespace hedgerow
