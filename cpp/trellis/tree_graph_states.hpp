// The states of the nodes of a tree-shaped graph, and the weights of the arcs between them.
//
// Without an automaton the states are the labels. With one they are its states, of which state 0,
// the beginning, is the one before the roots; no node is in it.
#pragma once

#include <cstdint>
#include <vector>

#include "simd.hpp"
#include "trellis/tree_graph.hpp"

namespace hedgerow {

// X states, K labels; rows of states and of labels are padded to whole lanes.
class GraphStates {
 public:
  // Weights are exp(score - shift), or scores if `logarithms`. Throws std::invalid_argument for
  // scores of arcs that are NaN or +inf.
  GraphStates(const GraphScores& scores, bool logarithms);

  bool first_order() const { return automaton_ == nullptr; }
  const Automaton* automaton() const { return automaton_; }
  int n_labels() const { return n_labels_; }
  int n_states() const { return n_states_; }
  int stride() const { return stride_; }              // of rows of states
  int label_stride() const { return label_stride_; }  // of rows of labels
  int32_t target(int64_t state, int32_t label) const {
    return first_order() ? label : targets_[state * n_labels_ + label];
  }
  // The arc from a state on a label, and the edge that goes with it.
  int32_t arc(int64_t state, int32_t label) const {
    const int64_t place = state * n_labels_ + label;
    return first_order() ? static_cast<int32_t>(place) : arcs_[place];
  }
  int64_t edge(int64_t state, int32_t label) const {
    const int32_t taken = arc(state, label);
    return first_order() || by_arc_ ? taken : automaton_->pair(taken);
  }
  // The states of a label: first_state(k) to first_state(k + 1).
  int32_t first_state(int32_t label) const {
    return first_order() ? label : automaton_->label_bounds[label];
  }

  // Whether exp(score - shift) of all arcs is at least kLeastArc, or 0 where a score is -inf.
  bool usable() const { return usable_; }
  // What was subtracted from the scores of all arcs, and from that of the arc into a root.
  double shift() const { return shift_; }
  double begin_shift() const { return first_order() ? 0.0 : shift_; }
  // (A,) weights of the arcs, except for edges.
  const std::vector<double>& arc_weights() const { return arc_weights_; }
  // (stride,) weight of the arc that leads a root to each state.
  const double* begin() const { return begin_.data(); }
  // (X, label_stride) weights of the arcs from each state on each label, except for edges.
  const double* matrix() const { return matrix_.data(); }
  // The same for a first-order model, [label, label of the parent]: (K, stride).
  const double* transposed() const { return transposed_.data(); }

  // Fills weights (X, label_stride) with those of the arcs into a position, including its `edges`.
  // Returns the shift, NaN if an edge is NaN or +inf. usable: see usable()
  double fill_matrix(const double* edges, bool& usable, double* weights) const;

 private:
  double weigh(double* weights, int64_t n, bool& usable) const;

  const Automaton* automaton_;
  const double* arc_scores_;
  bool by_arc_, logarithms_, usable_ = true;
  int n_labels_, n_states_, stride_, label_stride_;
  double shift_ = 0.0;
  std::vector<int32_t> targets_, arcs_;  // (X, K) with an automaton
  std::vector<double> arc_weights_;
  PaddedVector begin_, matrix_, transposed_;
};

}  // namespace hedgerow
