#include "trellis/tree_graph_states.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "trellis/tree_graph_rows.hpp"

namespace hedgerow {

GraphStates::GraphStates(const GraphScores& scores, bool logarithms)
    : automaton_(scores.automaton),
      arc_scores_(scores.arcs),
      by_arc_(scores.by_arc),
      logarithms_(logarithms),
      n_labels_(scores.n_labels),
      n_states_(automaton_ ? automaton_->n_states() : scores.n_labels),
      stride_(padded(n_states_)),
      label_stride_(padded(n_labels_)) {
  for (int64_t a = 0; a < scores.n_arcs(); ++a)
    if (!(scores.arcs[a] < kInfinity))
      throw std::invalid_argument("the score of arc " + std::to_string(a) +
                                  " is NaN or +inf; scores must be finite numbers or -inf");
  if (automaton_ != nullptr) {
    const size_t n = static_cast<size_t>(n_states_) * n_labels_;
    arcs_.resize(n), targets_.resize(n);
    for (int32_t q = 0; q < n_states_; ++q)
      automaton_->fill_arcs(q, arcs_.data() + static_cast<size_t>(q) * n_labels_);
    for (size_t i = 0; i < n; ++i) targets_[i] = automaton_->target(arcs_[i]);
  }
  const double zero = logarithms ? -kInfinity : 0.0, one = logarithms ? 0.0 : 1.0;
  arc_weights_.assign(scores.arcs, scores.arcs + scores.n_arcs());
  shift_ = weigh(arc_weights_.data(), scores.n_arcs(), usable_);
  matrix_.assign(static_cast<size_t>(stride_) * label_stride_, zero);
  for (int64_t q = 0; q < n_states_; ++q)
    for (int32_t k = 0; k < n_labels_; ++k)
      matrix_[q * label_stride_ + k] = arc_weights_[arc(q, k)];
  begin_.assign(stride_, zero);
  for (int32_t k = 0; k < n_labels_; ++k)
    begin_[target(Automaton::kBegin, k)] = first_order() ? one : arc_weights_[arc(0, k)];
  if (!first_order()) return;
  transposed_.assign(static_cast<size_t>(n_labels_) * stride_, zero);
  for (int64_t q = 0; q < n_labels_; ++q)
    for (int64_t k = 0; k < n_labels_; ++k)
      transposed_[k * stride_ + q] = matrix_[q * label_stride_ + k];
}

// Turns scores into weights, in place; returns what was subtracted.
double GraphStates::weigh(double* weights, int64_t n, bool& usable) const {
  if (logarithms_) return 0.0;
  const double largest = *std::max_element(weights, weights + n);
  const double shift = largest == -kInfinity ? 0.0 : largest;
  for (int64_t i = 0; i < n; ++i) {
    const bool forbidden = weights[i] == -kInfinity;
    weights[i] = std::exp(weights[i] - shift);
    if (!forbidden && !(weights[i] >= kLeastArc)) usable = false;
  }
  return shift;
}

HEDGEROW_CLONES
double GraphStates::fill_matrix(const double* edges, bool& usable, double* weights) const {
  // With an automaton, state 0 leads only to roots, which have no edges.
  const int64_t first = first_order() ? 0 : 1;
  bool bad = false;
  for (int64_t q = first; q < n_states_; ++q) {
    double* row = weights + q * label_stride_;
    for (int32_t k = 0; k < n_labels_; ++k) {
      const double each = edges[edge(q, k)];
      bad |= !(each < kInfinity);
      row[k] = arc_scores_[arc(q, k)] + each;
    }
    for (int k = n_labels_; k < label_stride_; ++k) row[k] = -kInfinity;
  }
  if (bad) return std::numeric_limits<double>::quiet_NaN();
  if (logarithms_) {
    std::fill(weights, weights + first * label_stride_, -kInfinity);
    return 0.0;
  }
  const int64_t begin = first * label_stride_, end = int64_t{n_states_} * label_stride_;
  Lanes tops = broadcast(-kInfinity), bottoms = broadcast(kInfinity);
  for (int64_t i = begin; i < end; i += kLanes) {
    tops = maximum(load(weights + i), tops);
    bottoms = minimum(replace_minus_infinity(load(weights + i), broadcast(kInfinity)), bottoms);
  }
  const double largest = max_lane(tops), smallest = min_lane(bottoms);
  const double shift = largest == -kInfinity ? 0.0 : largest;
  if (largest - smallest > -std::log(kLeastArc)) usable = false;
  for (int64_t i = begin; i < end; i += kLanes)
    store(weights + i, exp_nonpositive(load(weights + i) - broadcast(shift)));
  std::fill(weights, weights + first * label_stride_, 0.0);
  return shift;
}

}  // namespace hedgerow
