// Sums of gamma P (1 - P) over the edges of tree-shaped graphs, P the posteriors of label pairs.
//
// Where all edges have the same weights w, P[i, k] = left[i] w[i, k] right[k], so that
//   sum gamma P (1 - P) = w * sum (gamma left) right^T - w^2 * sum (gamma left^2) (right^2)^T,
// two sums of outer products. Where P is nearly 1 the difference would lose digits. That can only
// be at the pair of two labels that are both nearly certain, and its row is added directly.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "simd.hpp"
#include "trellis/scaled_loops.hpp"
#include "trellis/tree_graph_states.hpp"

namespace hedgerow {
namespace {

class PairCurvature {
 public:
  // First order.
  explicit PairCurvature(const GraphStates& states)
      : states_(states),
        stride_(states.stride()),
        direct_(table_size()),
        linear_(table_size()),
        square_(table_size()),
        waiting_(4 * static_cast<size_t>(kWaitingRows) * stride_) {}

  void open() {
    for (PaddedVector* table : {&direct_, &linear_, &square_})
      std::fill(table->begin(), table->end(), 0.0);
  }

  // Keeps which label of each node is nearly certain, if one is. reach, belief: rows of nodes first
  // .. end-1; norms: of all nodes
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

  // Adds the edge between a node and its parent. False, and nothing is added, if numbers are too
  // large to be squared.
  HEDGEROW_CLONES bool add(int64_t node, int64_t parent, const double* outside,
                           const double* belief, double norm, double gamma) {
    double *left = row(0), *right = row(1), *left_squares = row(2), *right_squares = row(3);
    const Lanes per_norm = broadcast(1.0 / norm), factor = broadcast(gamma);
    Lanes largest = broadcast(0.0);
    for (int k = 0; k < stride_; k += kLanes) {
      const Lanes from = load(outside + k) * per_norm, to = load(belief + k);
      largest = maximum(from, largest);
      store(left + k, factor * from);
      store(right + k, to);
      store(left_squares + k, factor * from * from);
      store(right_squares + k, to * to);
    }
    if (!(max_lane(largest) < kTooLarge)) return false;
    const int j = likely_[parent].label, k = likely_[node].label;
    if (j >= 0 && k >= 0) {
      left[j] = left_squares[j] = 0.0;
      // What the pair (j, k) leaves to others: all of other labels here, and k after others than j.
      const double others =
          gamma * likely_[node].others +
          sum_products(left, states_.transposed() + static_cast<int64_t>(k) * stride_) * belief[k];
      add_row(outside[j] / norm, j, k, belief, gamma, others);
    }
    if (++n_waiting_ == kWaitingRows) add_waiting();
    return true;
  }

  // Adds an edge of any weights. probs: (stride, stride), which is changed; 1 - p of a likely pair
  // is the sum of the others
  HEDGEROW_CLONES void add_probs(double gamma, PaddedVector& probs) {
    const Lanes scale = broadcast(gamma), one = broadcast(1.0);
    Lanes largest = broadcast(0.0);
    const auto size = static_cast<int64_t>(probs.size());
    for (int64_t p = 0; p < size; p += kLanes) {
      const Lanes each = load(&probs[p]);
      store(&direct_[p], load(&direct_[p]) + scale * each * (one - each));
      largest = maximum(each, largest);
    }
    const double top = max_lane(largest);
    if (top < 0.5) return;
    const auto likely = std::find(probs.begin(), probs.end(), top) - probs.begin();
    probs[likely] = 0.0;
    Lanes others = broadcast(0.0);
    for (int64_t p = 0; p < size; p += kLanes) others += load(&probs[p]);
    direct_[likely] += gamma * top * (sum_lanes(others) - (1.0 - top));
  }

  // Adds all that was added to curvature (K, K).
  void add_to(double* curvature) {
    add_waiting();
    const int64_t n_labels = states_.n_labels();
    for (int64_t j = 0; j < n_labels; ++j)
      for (int64_t k = 0; k < n_labels; ++k) {
        const int64_t place = j * stride_ + k;
        curvature[j * n_labels + k] += direct_[place];
        if (!(linear_[place] > 0.0)) continue;  // all is in direct_
        const double weight = states_.matrix()[place];
        curvature[j * n_labels + k] += weight * linear_[place] - weight * weight * square_[place];
      }
  }

 private:
  static constexpr double kCertain = 0.9;
  static constexpr double kTooLarge = 1e100;

  struct LikelyLabel {
    int label = -1;
    double others = 0.0;  // the probability of all other labels
  };

  size_t table_size() const { return static_cast<size_t>(stride_) * stride_; }
  // The row that waits next: 0 left, 1 right, 2 and 3 their squares.
  double* row(int kind) {
    return waiting_.data() + (static_cast<int64_t>(kind) * kWaitingRows + n_waiting_) * stride_;
  }

  HEDGEROW_INLINE double sum_products(const double* a, const double* b) const {
    Lanes sums = broadcast(0.0);
    for (int k = 0; k < stride_; k += kLanes) sums += load(a + k) * load(b + k);
    return sum_lanes(sums);
  }

  // Adds gamma p (1 - p) of the pairs (j, .), where p = scale w[j, .] right. others: gamma (1 - p)
  // of (j, k)
  HEDGEROW_INLINE void add_row(double scale, int j, int k, const double* right, double gamma,
                               double others) {
    const double* weights = states_.matrix() + static_cast<int64_t>(j) * stride_;
    double* sums = direct_.data() + static_cast<int64_t>(j) * stride_;
    const double before = sums[k];
    for (int c = 0; c < stride_; c += kLanes) {
      const Lanes probs = broadcast(scale) * load(weights + c) * load(right + c);
      store(sums + c, load(sums + c) + broadcast(gamma) * probs * (broadcast(1.0) - probs));
    }
    sums[k] = before + scale * weights[k] * right[k] * others;
  }

  HEDGEROW_CLONES void add_waiting() {
    const int64_t size = static_cast<int64_t>(kWaitingRows) * stride_;
    const double* rows = waiting_.data();
    add_outer(rows, rows + size, n_waiting_, stride_, linear_.data());
    add_outer(rows + 2 * size, rows + 3 * size, n_waiting_, stride_, square_.data());
    n_waiting_ = 0;
  }

  const GraphStates& states_;
  int stride_;
  int n_waiting_ = 0;
  PaddedVector direct_, linear_, square_;  // (stride, stride)
  PaddedVector waiting_;                   // (4, kWaitingRows, stride)
  std::vector<LikelyLabel> likely_;        // of each node
};

}  // namespace
}  // namespace hedgerow
