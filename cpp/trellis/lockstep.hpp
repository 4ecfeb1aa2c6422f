// Steps over a label automaton for four sequences at a time, a lane each: the automaton's tables
// are read once for all of them, and every number is a whole vector.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"
#include "trellis/automaton_chain.hpp"

namespace hedgerow {

using Numbers = std::vector<Packed>;

// The arcs' scores as the semiring's numbers, made once a batch.
struct TermWeights {
  // Throws std::invalid_argument for NaN or +inf. Logarithms are not shifted.
  TermWeights(const AutomatonScores& scores, bool logarithms);

  double shift = 0.0;             // what was subtracted from the scores: the largest
  double spread = 0.0;            // from the smallest finite score to the largest
  std::vector<double> by_arc;     // (A,)
  std::vector<double> to_states;  // (E,) in the order of the automaton's tables of terms
  std::vector<double> to_cells;   // (E,)
};

// The total of a row, or its largest number; and the smallest that is not 0.
struct Extent {
  Packed size, smallest;
};

// Which sequences share the lanes; what is in a lane that is not `live` does not matter.
struct Group {
  int64_t sequences[kLanes];
  int64_t lengths[kLanes];
  bool live[kLanes];
  int64_t longest;
};

// SumProduct gives full relative precision or refuses a lane. Every number it keeps is either 0,
// because no path leads there, or at least kSmallest; the factors of one step may span no more than
// kLargestSpread, so that a product of them is 0 only where a factor is; and only positive numbers
// are added. A lane of which this cannot be said is refused, and goes to LogSum.
inline constexpr double kLargestSpread = 345.0;   // exp(-345) > 1e-150; times kSmallest > 1e-290
inline constexpr double kLargestReached = 1e290;  // nor may a number be too large for its sums

template <class Semiring>
class Lockstep {
 public:
  Lockstep(const AutomatonScores& scores, const TermWeights& weights);

  void open(const Group& group);
  const Group& group() const { return group_; }
  bool lives(int lane, int64_t t) const { return group_.live[lane] && t < group_.lengths[lane]; }
  bool refused(int lane) const { return refused_[lane]; }

  // Makes the factors of position t, exp(nodes - maximum), (K,), and those of the edges into it.
  // Lanes that have ended get zeros. Throws std::invalid_argument for NaN or +inf.
  void fill_factors(int64_t t, Packed* factors);
  Lanes edge_factor(int32_t arc) const {
    return pair_factors_.empty() ? broadcast(Semiring::kOne)
                                 : static_cast<Lanes>(pair_factors_[scores_.automaton.pair(arc)]);
  }
  // What was subtracted from the scores of a path at the position of the factors.
  Lanes shifts() const { return shifts_; }

  // All rows are (S,). Before the first position all weight is where a labelling begins.
  void fill_begin(Packed* alpha) const;
  // Takes up alpha_{t-1}, for a step forward or back from position t.
  void load_alpha(const Packed* alpha);
  // alpha_t[q] = factor[label of q] * sum over the arcs into q of weight * sum of alpha_{t-1} over
  // the states that take the arc / norm of alpha_{t-1}; returns its norm, the sum over q. What has
  // been taken up then is alpha_t. Throws NoPath.
  Lanes forward(int64_t t, const Packed* factors, const Packed& norm_before, Packed* alpha) {
    reach();
    return arrive(t, factors, norm_before, alpha);
  }
  // The two parts of it: reached[q] = the sum over the arcs into q, and all the rest.
  void reach();
  Lanes arrive(int64_t t, const Packed* factors, const Packed& norm_before, Packed* alpha);

  // beta_t, of the position that is to be taken back next.
  const Packed* beta() const { return bars_.data(); }
  void set_beta(const Packed* beta) { std::copy(beta, beta + n_states_, bars_.begin()); }
  // Sets beta_t, which all is 0 there, to 1 / norm in the lanes that end at t.
  void begin_beta(int64_t t, const Packed& norm);
  // reached[q] = factor[label of q] * beta_t[q], divided by the largest beta_t.
  void reach_by_largest(int64_t t, const Packed* factors);
  // After reach_by_largest: copies beta_t. With SumProduct its largest number becomes about 1, by a
  // power of two, which costs no digit: a step from there may span all of kLargestSpread.
  void copy_beta(Packed* row) const;
  // reached[q] = factor[label of q] * beta_t[q] / norm of alpha_{t-1}, and
  // marginals[k] = sum over the states of label k of alpha_t beta_t, scaled to a sum of 1: (K,).
  // It is 1 by the choice of the norms, but for rounding, which the next position makes good.
  void reach_with_marginals(int64_t t, const Packed* factors, const Packed& norm_before,
                            const Packed& norm, const Packed* alpha, Packed* marginals)
    requires Semiring::kSums;
  // beta_{t-1}[p] = sum over the arcs that p takes of weight * reached[target].
  void backward();
  // The same, and adds the posteriors of the terms, (sum of alpha_{t-1}) * weight * reached, to
  // sums: (E,), in the order of to_cells; each lane counts by its share. With SumProduct the arc's
  // weight is left out: it is the same at every position.
  void backward(const Packed& shares, double* sums)
    requires Semiring::kSums
  {
    backward(cells_.data(), shares, sums);
  }
  // With other numbers in place of the sums of alpha_{t-1}: (C,)
  void backward(const Packed* row_values, const Packed& shares, double* sums)
    requires Semiring::kSums;
  // The posteriors of this position alone. probs: (E,)
  void fill_term_probs(Packed* probs) const
    requires Semiring::kSums;

  // What the last steps have left, for those who take the same steps with other numbers.
  const Packed* cells() const { return cells_.data(); }
  const Packed* reached() const { return reached_.data(); }
  const Packed* scaled_factors() const { return scaled_factors_.data(); }
  const Numbers& pair_factors() const { return pair_factors_; }
  Lanes rounding() const { return rounding_; }

 private:
  void scale_factors(const Packed* factors, Lanes scale);
  void refuse_beyond(int64_t t, const Extent& extent, const Packed& scale, const Packed& step);
  void add_extent(const char* what, int64_t t, const Extent& extent, const Packed& n_bad,
                  double* shifts, double* spreads);

  const AutomatonScores& scores_;
  const TermWeights& weights_;
  int n_states_;
  Group group_{};
  bool refused_[kLanes] = {};
  Packed shifts_{};
  Packed largest_{};             // number of the beta that reach_by_largest went back from
  Packed rounding_{};            // what the sum of the last marginals lacked to 1, as a factor
  std::vector<double> nothing_;  // a row of -inf, for lanes that have ended
  Numbers scaled_factors_;       // (K,)
  Numbers pair_factors_;         // (K * K + 1,) of the edges, 1 at the end; empty without edges
  Numbers cells_;                // (C,) alpha_{t-1}, and its sums over the automaton's cells
  Numbers bars_;                 // (C,) what comes back to the cells: beta, and shares of it
  Numbers reached_;              // (S,) what reaches the states, in either direction
};

}  // namespace hedgerow
