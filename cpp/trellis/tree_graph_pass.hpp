// Messages from the leaves of tree-shaped graphs to their roots, and back.
//
// Upwards, with f_c the factors of a node's labels and w the weights of arcs and edges,
//   belief_c[x]  = f_c[label of x] prod over the children g of message_g[x],
//   message_c[q] = sum over labels k of w_c[q, k] belief_c[target(q, k)],
// and Z is the product over the roots of sum_x begin[x] belief[x]. Downwards
//   reach_c[x]   = sum over (q, k) that lead to x of outside_c[q] w_c[q, k], begin[x] at a root,
//   outside_g[x] = f_c[x] reach_c[x] prod over the other children s of c of message_s[x].
// Since a message may be 0, nothing is divided: on the way up outside_g is f_c times the messages
// of earlier siblings, on the way down it is multiplied by reach_c times those of later ones. Then
//   P(state of c = x)            ~ reach_c[x] belief_c[x],
//   P(state of parent = q, y_c = k) ~ outside_c[q] w_c[q, k] belief_c[target(q, k)],
// with the same sum. Beliefs and outsides are scaled as described in tree_graph_rows.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "parallel.hpp"
#include "trellis/score_errors.hpp"
#include "trellis/semiring.hpp"
#include "trellis/sums.hpp"
#include "trellis/tree_graph_order.hpp"
#include "trellis/tree_graph_rows.hpp"
#include "trellis/tree_graph_states.hpp"
#include "trellis/tree_graph_steps.hpp"

namespace hedgerow {

// Number of nodes processed between two checks for a stop, and at a time on the way down.
inline constexpr int64_t kGraphBlock = 64;
// Maximum number of arc weights that are kept, for all nodes that are processed together.
inline constexpr size_t kMostKept = kLowLimits ? 1 << 9 : 1 << 20;

namespace {

// Passes over the chosen sequences together: their nodes are those of a GraphOrder.
template <class Algebra>
class GraphPass {
 public:
  // keeps_totals: whether log_z() or log_likelihood() will be called; grid: of sums over arcs
  GraphPass(const GraphScores& scores, const GraphStates& states, Stop& stop, bool keeps_totals,
            const SumGrid& grid = SumGrid(0.0))
      : scores_(scores),
        states_(states),
        stop_(stop),
        stride_(states.stride()),
        keeps_totals_(keeps_totals),
        n_inner_(scores.offsets[scores.n_sequences] - Row(scores.n_labels).n_outer_rows()),
        label_rows_(2 * static_cast<size_t>(states.label_stride())),
        terms_(scores.automaton ? 2 * static_cast<size_t>(stride_) : 0) {
    if (kInLanes && scores.automaton && scores.edges == nullptr)
      steps_.emplace(states, states.arc_weights(), grid);
  }

  const GraphOrder& order() const { return order_; }
  // Whether a sequence violated the bounds of Scaled: its numbers are then meaningless.
  bool refused(int64_t chosen) const { return totals_[chosen].refused; }
  bool any_refused() const {
    return std::any_of(totals_.begin(), totals_.end(), [](const Total& t) { return t.refused; });
  }

  // Computes all beliefs and messages. Throws NoPath, and std::invalid_argument for bad scores.
  void up(std::span<const int64_t> chosen) {
    chosen_ = chosen;
    order_.build(scores_.offsets, scores_.parents, chosen.data(), chosen.size());
    totals_.assign(chosen.size(), Total());
    if (!states_.usable() && !Algebra::kLogs) {
      for (Total& total : totals_) total.refused = true;
      return;
    }
    const size_t n = order_.size() * static_cast<size_t>(stride_);
    if (beliefs_.size() < n) beliefs_.resize(n), messages_.resize(n), outside_.resize(n);
    if (scores_.edges != nullptr) {
      keeps_matrices_ = order_.size() * matrix_size() <= kMostKept;
      const size_t size = (keeps_matrices_ ? order_.size() : 1) * matrix_size();
      if (matrices_.size() < size) matrices_.resize(size);
    }
    for (int64_t first = 0; first < order_.size(); first += kGraphBlock) {
      stop_.check();
      report(fill_factors(first, std::min(first + kGraphBlock, order_.size())));
    }
    for (int64_t level = order_.n_levels() - 1; level >= 0; --level)
      for (int64_t first = order_.levels[level]; first < order_.levels[level + 1];
           first += kGraphBlock) {
        stop_.check();
        const int64_t end = std::min(first + kGraphBlock, order_.levels[level + 1]);
        report(fill_beliefs(first, end));
        report(level > 0 ? fill_messages(first, end) : close_roots(first, end));
      }
  }

  // Log Z of a chosen sequence, after up().
  double log_z(int64_t chosen) const {
    return totals_[chosen].shifts.value() + totals_[chosen].log();
  }
  // Log P(labels) of a chosen sequence, from its path score, see fill_path_scores.
  double log_likelihood(int64_t chosen, double path_score) const {
    return path_score - totals_[chosen].log();
  }
  // Fills path_scores with the scores of labels minus what was subtracted from those of all
  // labellings.
  void fill_path_scores(const int32_t* labels, std::vector<double>& path_scores) {
    std::vector<ExactSum> sums(chosen_.size());
    std::vector<int32_t> states(order_.size());
    for (int64_t i = 0; i < order_.size(); ++i) {
      ExactSum& sum = sums[order_.sequences[i]];
      const int64_t position = order_.positions[i], parent = order_.parents[i];
      const int32_t label = labels[position], before = parent < 0 ? 0 : states[parent];
      sum.add(scores_.nodes[position * scores_.n_labels + label]);
      if (parent >= 0 || scores_.automaton) sum.add(scores_.arcs[states_.arc(before, label)]);
      if (parent >= 0 && scores_.edges) sum.add(edges_of(i)[states_.edge(before, label)]);
      states[i] = states_.target(before, label);
    }
    path_scores.resize(sums.size());
    for (size_t s = 0; s < sums.size(); ++s) {
      sums[s].add(totals_[s].shifts, -1.0);
      path_scores[s] = sums[s].value();
    }
  }

 protected:
  // Sums of logarithms are not computed in lanes.
  static constexpr bool kInLanes = !(Algebra::kLogs && Algebra::kSums);
  using Semiring = std::conditional_t<Algebra::kSums, SumProduct, MaxPlus>;

  struct Total {
    ExactSum shifts;      // what was subtracted from scores
    ExactSum log_scales;  // logarithms of what rows were divided by
    LogProduct scales;    // the same, unless numbers are logarithms
    bool refused = false;

    HEDGEROW_INLINE void add_scale(double scale) {
      if constexpr (Algebra::kLogs)
        log_scales.add(scale);
      else
        scales.multiply(scale);
    }
    double log() const { return log_scales.value() + scales.log(); }
  };
  // What went wrong at a node; node -1: nothing.
  struct Problem {
    int64_t node = -1;
    enum { kBadNode, kBadEdge, kNoPath } kind = kBadNode;
  };

  // Number of entries of a table of arcs, with a row for each state and a column for each label.
  size_t table_size() const { return static_cast<size_t>(stride_) * states_.label_stride(); }
  double* belief(int64_t node) { return beliefs_.data() + node * stride_; }
  double* message(int64_t node) { return messages_.data() + node * stride_; }
  double* outside(int64_t node) { return outside_.data() + node * stride_; }
  const double* edges_of(int64_t node) const {
    return scores_.edges + order_.positions[node] * scores_.n_edges();
  }
  Total& total_of(int64_t node) { return totals_[order_.sequences[node]]; }

  // Prefetches the row (K,) of a node that comes some steps later: nodes of a level are far from
  // each other in memory.
  HEDGEROW_INLINE void prefetch_ahead(const double* rows, int64_t node) const {
    constexpr int64_t kAhead = 12, kLine = 8;
    const int64_t later = std::clamp<int64_t>(node + kAhead, 0, order_.size() - 1);
    const double* row = rows + order_.positions[later] * scores_.n_labels;
    for (int k = 0; k < scores_.n_labels; k += kLine) HEDGEROW_PREFETCH(row + k);
    HEDGEROW_PREFETCH(row + scores_.n_labels - 1);
  }

  // Factors of a node's states, with which its belief begins. Returns the maximum that was
  // subtracted.
  HEDGEROW_INLINE double fill_factors_of(int64_t node, bool& bad, bool& lost) {
    const int64_t position = order_.positions[node];
    const bool dense = states_.first_order();
    double* row = belief(node);
    double* factors = dense ? row : label_rows_.data();
    const double top =
        fill_node_factors<Algebra>(scores_.nodes + position * scores_.n_labels,
                                   Row(scores_.n_labels), position < n_inner_, factors, bad, lost);
    if (dense) return top;
    std::fill(row, row + stride_, Algebra::kZero);
    for (int32_t k = 0; k < scores_.n_labels; ++k)
      std::fill(row + states_.first_state(k), row + states_.first_state(k + 1), factors[k]);
    return top;
  }

  size_t matrix_size() const {
    return static_cast<size_t>(states_.n_states()) * states_.label_stride();
  }
  // The weights of the arcs into a node, (X, label_stride). With edges they are computed when first
  // needed, in up(), and kept unless that takes too much memory.
  const double* matrix_of(int64_t node) {
    if (scores_.edges == nullptr) return states_.matrix();
    bool usable = true;
    if (!keeps_matrices_) states_.fill_matrix(edges_of(node), usable, matrix_at(node));
    return matrix_at(node);
  }
  // Likewise in up(), which computes them; returns what was subtracted from the scores, NaN for a
  // bad edge.
  double open_matrix(int64_t node, bool& lost) {
    if (scores_.edges == nullptr) return states_.shift();
    bool usable = true;
    const double shift = states_.fill_matrix(edges_of(node), usable, matrix_at(node));
    lost |= !usable;
    return shift;
  }
  double* matrix_at(int64_t node) {
    return matrices_.data() + (keeps_matrices_ ? node * matrix_size() : 0);
  }

  // The numbers of the states to which labels lead from a state: belief[target(q, k)],
  // (label_stride,).
  HEDGEROW_INLINE const double* gather(const double* by_state, int64_t state) {
    if (states_.first_order()) return by_state;
    double* row = label_rows_.data();
    std::fill(row, row + states_.label_stride(), Algebra::kZero);
    for (int32_t k = 0; k < scores_.n_labels; ++k) row[k] = by_state[states_.target(state, k)];
    return row;
  }

  // Notes that a row of beliefs was divided by scale, which is kZero if all are zeros; lost: see
  // scale_row_by. False if there is therefore no labelling.
  HEDGEROW_INLINE bool add_scale(int64_t node, double scale, bool lost) {
    if (scale == Algebra::kOne && !lost) return true;
    Total& total = total_of(node);
    total.refused |= lost;
    if (scale != Algebra::kZero) {
      if (keeps_totals_) total.add_scale(scale);
    } else {
      std::fill(belief(node), belief(node) + stride_, Algebra::kOne);
    }
    return scale != Algebra::kZero || total.refused;
  }
  // For the nodes at places first .. end-1, so that scores are read in their order.
  Problem fill_factors(int64_t first, int64_t end);
  Problem fill_beliefs(int64_t first, int64_t end);
  Problem fill_messages(int64_t first, int64_t end);
  Problem close_roots(int64_t first, int64_t end);
  // Roots become children of a node in the state before the first label, for steps_.
  HEDGEROW_INLINE void open_outside(int64_t root) {
    std::fill(outside(root), outside(root) + stride_, Algebra::kZero);
    outside(root)[Automaton::kBegin] = Algebra::kOne;
  }
  // reach of nodes first .. end-1, rows of out; the nodes are of one level.
  void fill_reach(int64_t first, int64_t end, double* out);
  // Completes the outsides of the children of nodes first .. end-1. reach: rows of these nodes,
  // which are multiplied by the children's messages
  void fill_outsides(int64_t first, int64_t end, double* reach);

  void report(const Problem& problem) const {
    if (problem.node < 0) return;
    const int64_t sequence = chosen_[order_.sequences[problem.node]];
    const int64_t t = order_.positions[problem.node] - scores_.offsets[sequence];
    if (problem.kind == Problem::kBadNode) throw_bad_score("a node", t, sequence);
    if (problem.kind == Problem::kBadEdge) throw_bad_score("an edge", t, sequence);
    throw NoPath("sequence " + std::to_string(sequence) +
                 " has no labelling with a finite score: none exists for the subtree at position " +
                 std::to_string(t) + "; allow more labels or arcs");
  }

  const GraphScores& scores_;
  const GraphStates& states_;
  Stop& stop_;
  int stride_;
  bool keeps_totals_;
  int64_t n_inner_;  // positions before this one have inner rows: see Row
  std::span<const int64_t> chosen_;
  GraphOrder order_;
  std::vector<Total> totals_;                  // of each chosen sequence
  PaddedVector beliefs_, messages_, outside_;  // (n, stride)
  std::optional<GraphSteps<Semiring>> steps_;  // over an automaton, without edges
  bool keeps_matrices_ = false;
  PaddedVector matrices_;            // (n or 1, X, label_stride), with edges
  PaddedVector label_rows_, terms_;  // rows
};

template <class Algebra>
HEDGEROW_CLONES typename GraphPass<Algebra>::Problem GraphPass<Algebra>::fill_factors(int64_t first,
                                                                                      int64_t end) {
  for (int64_t place = first; place < end; ++place) {
    const int64_t i = order_.nodes[place];
    bool bad = false, lost = false;
    const double top = fill_factors_of(i, bad, lost);
    if (bad) return {i, Problem::kBadNode};
    if (!add_scale(i, top > -kInfinity ? Algebra::kOne : Algebra::kZero, lost))
      return {i, Problem::kNoPath};
    if (keeps_totals_ && top > -kInfinity) total_of(i).shifts.add(top);
  }
  return {};
}

template <class Algebra>
HEDGEROW_CLONES typename GraphPass<Algebra>::Problem GraphPass<Algebra>::fill_beliefs(int64_t first,
                                                                                      int64_t end) {
  // A single loop over all children: the end of a loop over those of each node would be hard to
  // predict.
  for (int64_t c = order_.first_children[first]; c < order_.first_children[end]; ++c) {
    const int64_t parent = order_.parents[c];
    bool lost = false;
    if constexpr (Algebra::kSums) copy_row(belief(parent), stride_, outside(c));
    const double scale =
        multiply_rows_to<Algebra>(belief(parent), message(c), stride_, belief(parent), lost);
    if (!add_scale(parent, scale, lost)) return {parent, Problem::kNoPath};
  }
  return {};
}

template <class Algebra>
HEDGEROW_CLONES typename GraphPass<Algebra>::Problem GraphPass<Algebra>::fill_messages(
    int64_t first, int64_t end) {
  const int label_stride = states_.label_stride();
  if (steps_ || (scores_.edges == nullptr && states_.first_order())) {
    if (steps_)
      steps_->fill_messages(belief(first), end - first, message(first));
    else
      send_all_rows<Algebra>(belief(first), end - first, stride_, states_.transposed(),
                             scores_.n_labels, stride_, message(first), stride_);
    for (int64_t i = first; i < end && keeps_totals_; ++i) total_of(i).shifts.add(states_.shift());
    return {};
  }
  for (int64_t i = first; i < end; ++i) {
    const double shift = open_matrix(i, total_of(i).refused);
    if (std::isnan(shift)) return {i, Problem::kBadEdge};
    total_of(i).shifts.add(shift);
    const double* weights = matrix_of(i);
    double* row = message(i);
    std::fill(row, row + stride_, Algebra::kZero);
    for (int64_t q = 0; q < states_.n_states(); ++q)
      row[q] = dot_rows<Algebra>(weights + q * label_stride, gather(belief(i), q), label_stride);
  }
  return {};
}

template <class Algebra>
typename GraphPass<Algebra>::Problem GraphPass<Algebra>::close_roots(int64_t first, int64_t end) {
  for (int64_t i = first; i < end; ++i) {
    Total& total = total_of(i);
    const double sum = dot_rows<Algebra>(states_.begin(), belief(i), stride_);
    if (sum == Algebra::kZero && !total.refused) return {i, Problem::kNoPath};
    if (sum != Algebra::kZero) total.add_scale(sum);
    total.shifts.add(states_.begin_shift());
  }
  return {};
}

template <class Algebra>
HEDGEROW_CLONES void GraphPass<Algebra>::fill_reach(int64_t first, int64_t end, double* out) {
  if (order_.parents[first] < 0) {
    for (int64_t i = first; i < end; ++i)
      std::copy(states_.begin(), states_.begin() + stride_, out + (i - first) * stride_);
    return;
  }
  if (steps_) return steps_->fill_reach(outside(first), end - first, out);
  if (states_.first_order() && scores_.edges == nullptr) {
    send_all_rows<Algebra>(outside(first), end - first, stride_, states_.matrix(), scores_.n_labels,
                           stride_, out, stride_);
    return;
  }
  const int label_stride = states_.label_stride();
  for (int64_t i = first; i < end; ++i, out += stride_) {
    const double* weights = matrix_of(i);
    const double* from = outside(i);
    if (states_.first_order()) {
      send_rows<Algebra, 1>(from, stride_, weights, scores_.n_labels, stride_, out, stride_);
      continue;
    }
    // The largest term of each state, then the sum of all terms in units of it.
    double* top = terms_.data();
    double* sums = top + stride_;
    std::fill(top, top + stride_, Algebra::kZero);
    std::fill(sums, sums + stride_, 0.0);
    const auto for_each_term = [&](auto use) {
      for (int64_t q = 1; q < states_.n_states(); ++q) {
        if (from[q] == Algebra::kZero) continue;
        for (int32_t k = 0; k < scores_.n_labels; ++k)
          use(states_.target(q, k), product<Algebra>(from[q], weights[q * label_stride + k]));
      }
    };
    if constexpr (Algebra::kLogs) {
      for_each_term([&](int32_t x, double term) { top[x] = max_of(term, top[x]); });
      for_each_term([&](int32_t x, double term) {
        if (term > -kInfinity) sums[x] += std::exp(term - top[x]);
      });
      for (int x = 0; x < stride_; ++x) out[x] = top[x] + std::log(sums[x]);
    } else {
      for_each_term([&](int32_t x, double term) { sums[x] += term; });
      std::copy(sums, sums + stride_, out);
    }
  }
}

template <class Algebra>
HEDGEROW_CLONES void GraphPass<Algebra>::fill_outsides(int64_t first, int64_t end, double* reach) {
  for (int64_t c = order_.first_children[end] - 1; c >= order_.first_children[first]; --c) {
    const int64_t parent = order_.parents[c];
    double* later = reach + (parent - first) * stride_;
    bool lost = false;
    multiply_rows_to<Algebra>(outside(c), later, stride_, outside(c), lost);
    multiply_rows_to<Algebra>(later, message(c), stride_, later, lost);
    if (lost) total_of(parent).refused = true;
  }
}

}  // namespace
}  // namespace hedgerow
