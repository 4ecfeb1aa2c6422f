// Forward and backward steps over a label automaton for kLanes = 4 sequences at a time, one per
// lane: the automaton's tables are read once for all four, and every number is a vector of lanes.
//
// Dimensions: K labels, S states (not sequences), A arcs, C cells and E terms of the automaton.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"
#include "trellis/automaton_chain.hpp"

namespace hedgerow {

using Numbers = std::vector<Packed>;

// sums[places[e]] += values[e] for all e
void add_by_place(const Packed* values, const std::vector<int32_t>& places, Packed* sums);

// The arcs' scores as numbers of a semiring, computed once per batch: exp(score - shift), or the
// score itself where the semiring works with logarithms.
struct TermWeights {
  // Throws std::invalid_argument for NaN or +inf.
  TermWeights(const AutomatonScores& scores, bool logarithms);

  double shift = 0.0;             // the largest score; 0 with logarithms
  double spread = 0.0;            // the largest score minus the smallest finite one
  std::vector<double> by_arc;     // (A,) weight of each arc
  std::vector<double> to_states;  // (E,) weight of each term's arc, in the order of to_states
  std::vector<double> to_cells;   // (E,) the same in the order of to_cells
};

// For each lane, the sum of a row or its largest number (`size`), and the smallest that is not 0.
struct Extent {
  Packed size, smallest;
};

// The sequences that share the lanes. Lanes that are not live are ignored.
struct Group {
  int64_t sequences[kLanes];  // index of each lane's sequence in the batch
  int64_t lengths[kLanes];    // number of positions of each
  bool live[kLanes];
  int64_t longest;  // the largest length
};

// SumProduct gives full relative precision or refuses a lane. Every number it keeps is either 0,
// because no path leads there, or at least kSmallest; the factors of one step may differ by at most
// a factor of exp(kLargestSpread), so that their product is 0 only where a factor is; and only
// positive numbers are added. A lane that violates this is refused, and computed with LogSum.
inline constexpr double kLargestSpread = 345.0;   // exp(-345) > 1e-150; times kSmallest > 1e-290
inline constexpr double kLargestReached = 1e290;  // bound on beta_t * factor, whose sums are finite

// One group's forward-backward. With f_t[q] = exp(nodes[t, label of q] - maximum over labels),
// w = exp(arcs - maximum), and norm_t = sum_q alpha_t[q], where norm_{-1} = 1:
//   forward    reached[q] = sum over the arcs a into q of w[a] sum over the states p that take a of
//                           alpha_{t-1}[p],
//              alpha_t[q] = f_t[q] reached[q] / norm_{t-1}
//   backward   reached[q] = f_t[q] beta_t[q] / norm_{t-1},
//              beta_{t-1}[p] = sum over the arcs a that p takes of w[a] reached[target of a]
// from alpha_{-1} = 1 in state 0, and beta = 1 / norm at a sequence's last position. Then alpha_t
// beta_t is the posterior of the states at t. With edges, w[a] is multiplied by exp(edges[t, edge
// of a] - maximum over all M of them), the edge factor. The maxima that were subtracted at t are
// shifts().
//
// Order of the calls for a group, after open():
//   forward, t = 0, 1, ...:   fill_factors(t), forward(t). load_alpha(alpha_{t-1}) comes before the
//                             first step; forward() leaves alpha_t loaded for the next.
//   backward, t = T-1, ...:   fill_factors(t), or use_edge_factors if the factors of the
//                             forward pass were kept, begin_beta(t),
//                             reach_with_marginals(t), load_alpha(alpha_{t-1}) if posteriors of
//                             terms are wanted, backward().
//   backward without alphas:  fill_factors(t), begin_beta(t) with a norm of 1,
//                             reach_by_largest(t), copy_beta, backward().
template <class Semiring>
class Lockstep {
 public:
  Lockstep(const AutomatonScores& scores, const TermWeights& weights);

  void open(const Group& group);
  const Group& group() const { return group_; }
  // Whether the sequence of a lane has a position t.
  bool is_live(int lane, int64_t t) const { return group_.live[lane] && t < group_.lengths[lane]; }
  // Whether a lane violated the bounds above since open(): its numbers are then meaningless.
  bool refused(int lane) const { return refused_[lane]; }
  bool any_refused() const {
    return std::any_of(refused_, refused_ + kLanes, [](bool refused) { return refused; });
  }

  // Fills factors (K,) with exp(nodes - maximum) of position t, and computes the factors of the
  // edges into that position. Lanes that have ended get zeros. Throws std::invalid_argument for NaN
  // or +inf.
  void fill_factors(int64_t t, Packed* factors);
  // The factor of the edge that an arc reads, at the position of the last fill_factors; 1 without
  // edges.
  Lanes edge_factor(int32_t arc) const {
    return edge_factors_ == nullptr ? broadcast(Semiring::kOne)
                                    : static_cast<Lanes>(edge_factors_[scores_.edge(arc)]);
  }
  // The number of edge factors, 0 without edges; and the place to which the next fill_factors
  // writes them. If the backward pass sets the place where those of the forward pass are kept, it
  // needs no other fill_factors.
  int64_t n_edge_factors() const { return std::ssize(own_edge_factors_); }
  void use_edge_factors(Packed* factors) {
    if (edge_factors_ != nullptr) edge_factors_ = factors;
  }
  // What was subtracted from the score of every path at the position of the last fill_factors.
  Lanes shifts() const { return shifts_; }

  // alpha_{-1}: 1 in state 0, where every labelling begins. alpha: (S,)
  void fill_begin(Packed* alpha) const;
  // Sets alpha_{t-1}, for a step forward or back from position t. alpha: (S,)
  void load_alpha(const Packed* alpha);
  // Fills alpha (S,) with alpha_t, loads it, and returns norm_t. norm_before: norm_{t-1}. Throws
  // NoPath.
  Lanes forward(int64_t t, const Packed* factors, const Packed& norm_before, Packed* alpha) {
    reach();
    return arrive(t, factors, norm_before, alpha);
  }

  // (S,) beta of the position that the next step back starts from.
  const Packed* beta() const { return cell_betas_.data(); }
  void set_beta(const Packed* beta) { std::copy(beta, beta + n_states_, cell_betas_.begin()); }
  // Sets beta_t to 1 / norm_t in the lanes whose last position is t; it is 0 there before.
  void begin_beta(int64_t t, const Packed& norm);
  // reached[q] = f_t[q] beta_t[q] / max_q beta_t[q].
  void reach_by_largest(int64_t t, const Packed* factors);
  // After reach_by_largest: copies beta_t to row (S,). With SumProduct it is multiplied by a power
  // of two, which is exact, so that its largest number is between 1/2 and 1: the factors of a step
  // from there may then differ by all of exp(kLargestSpread).
  void copy_beta(Packed* row) const;
  // reached[q] = f_t[q] beta_t[q] / norm_{t-1}, and
  // marginals[k] = sum over the states q of label k of alpha_t[q] beta_t[q], (K,).
  // Their sum over k is 1 up to rounding. They are divided by it, and so is `reached` at the next
  // step back, so that rounding errors do not accumulate. norm: norm_t; alpha: (S,) alpha_t
  void reach_with_marginals(int64_t t, const Packed* factors, const Packed& norm_before,
                            const Packed& norm, const Packed* alpha, Packed* marginals)
    requires Semiring::kSums;
  // beta_{t-1}[p] = sum over the arcs a that p takes of w[a] reached[target of a].
  void backward();
  // The same, and sums[e] += shares[lane] * posterior of term e, lane by lane, (E,) in the
  // order of to_cells. The posterior of a term is
  //   (sum of alpha_{t-1} over its cell) * w[arc] * reached[target];
  // with SumProduct w[arc], the same at every position, is left out of the sums.
  void backward(const Packed& shares, Packed* sums)
    requires Semiring::kSums
  {
    backward(cell_alphas_.data(), shares, sums);
  }
  // Before backward(): the posteriors of the terms at this position. probs: (E,)
  void fill_term_probs(Packed* probs) const
    requires Semiring::kSums;

 protected:
  // The two parts of forward(): `reached`, then alpha_t from it.
  void reach();
  Lanes arrive(int64_t t, const Packed* factors, const Packed& norm_before, Packed* alpha);
  // backward(shares, sums) with other numbers than the sums of alpha_{t-1} over the cells.
  // cell_values: (C,)
  void backward(const Packed* cell_values, const Packed& shares, Packed* sums)
    requires Semiring::kSums;

  const AutomatonScores& scores_;
  const TermWeights& weights_;
  int n_states_;
  Packed rounding_{};       // 1 / sum of the last marginals before they were divided by it
  Numbers scaled_factors_;  // (K,) the last factors times what the step was scaled by
  Packed* edge_factors_;    // (M + 1,) of the edges, 1 at the end; null without edges
  Numbers cell_alphas_;     // (C,) sum of the loaded alpha over each cell; first those of states
  Numbers cell_betas_;  // (C,) first beta of the states; for the other cells scratch of backward
  Numbers reached_;     // (S,) see the formulas above

 private:
  void scale_factors(const Packed* factors, Lanes scale);
  void refuse_beyond(int64_t t, const Extent& extent, const Packed& scale, const Packed& step);
  void add_extent(const char* what, int64_t t, const Extent& extent, const Packed& n_bad,
                  double* shifts, double* spreads);

  Numbers own_edge_factors_;  // the edge factors, unless the caller has a place for them
  Group group_{};
  bool refused_[kLanes] = {};
  Packed shifts_{};
  Packed largest_{};             // max_q beta_t[q] of the last reach_by_largest
  std::vector<double> nothing_;  // (K,) or (M,) -inf: the scores of lanes that have ended
};

}  // namespace hedgerow
