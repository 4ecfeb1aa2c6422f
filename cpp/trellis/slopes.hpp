// The tangent of Lockstep: every number has a slope, its derivative along a direction of the
// scores.
//
// A number x of Lockstep is a sum over paths. Its mean gain a = d log x is how much the scores of
// these paths increase along the direction, averaged with the weights of the paths:
//   x = y + z                                         a_x = (y a_y + z a_z) / x
//   x = y f, f a factor whose score moves by u        a_x = a_y + u
// With SumProduct the slope is x a = dx: both rules are linear in it, so the loops of Lockstep
// compute it. With LogSum, where x is kept as a logarithm, the slope is a itself.
#pragma once

#include <cstdint>
#include <vector>

#include "sum_grid.hpp"
#include "trellis/lockstep.hpp"
#include "trellis/semiring.hpp"

namespace hedgerow {

// Lockstep with slopes; see there for the numbers, and for the order of the calls. K labels, S
// states, A arcs, C cells, E terms. What is passed for a position t:
//   row    (2S+1,) alpha_t (S,), its slopes (S,), and the mean gain that was subtracted from all of
//          them at t to keep them small
//   moves  (K,) the direction of the nodes at t, minus its mean under the labels' marginals
// The direction of an arc is called its move, too. The norms have no slopes: they count as
// constants by which alpha is divided.
template <class Semiring>
class LockstepSlopes : private Lockstep<Semiring> {
 public:
  // arc_moves: (A,) or null: 0; sums: whether add_arc_sums will be called
  LockstepSlopes(const AutomatonScores& scores, const TermWeights& weights, const double* arc_moves,
                 bool sums);

  using Lockstep<Semiring>::group;
  using Lockstep<Semiring>::is_live;
  using Lockstep<Semiring>::refused;
  using Lockstep<Semiring>::any_refused;
  using Lockstep<Semiring>::fill_factors;
  using Lockstep<Semiring>::begin_beta;

  void open(const Group& group);
  // The row before the first position.
  void fill_begin(Packed* row) const;
  // Sets the row of t - 1, for a step forward or back from position t.
  void load_row(const Packed* row);
  // Fills the row of t, loads it, and returns norm_t. probs: (K,) marginals of the labels at t
  Lanes forward(int64_t t, const Packed* factors, const Packed& norm_before, const Packed* moves,
                const Packed* probs, Packed* row);
  // Lockstep::reach_with_marginals, and the derivatives of the marginals. row: of t;
  // marginals, marginal_slopes: (K,)
  void reach_with_marginals(int64_t t, const Packed* factors, const Packed& norm_before,
                            const Packed& norm, const Packed* row, const Packed* moves,
                            Packed* marginals, Packed* marginal_slopes);
  // Before backward(): the derivatives of the terms' posteriors at this position. slopes: (E,), in
  // the order of to_cells
  void fill_term_slopes(Packed* slopes) const;
  // Lockstep::backward with slopes; adds those of the terms' posteriors to what add_arc_sums adds.
  void backward();
  // Adds the derivatives of the arcs' posteriors, summed over all steps since open. arc_sums: (A,)
  void add_arc_sums(const SumTable& arc_sums) const;

 private:
  // slopes: (S,) of alpha
  void load_slopes(const Packed* slopes);
  // The slopes of each step of Lockstep, specialised for the two semirings.
  void sum_cell_slopes();
  void reach_slopes();
  void arrive_slopes(const Packed* moves, const Packed* probs, Packed* row);
  void reach_back_slopes(const Packed* row, const Packed* moves, const Packed* marginals,
                         Packed* marginal_slopes);
  void backward_slopes();
  Lanes term_slope(const TermTable& to_cells, int32_t row, int64_t term) const;

  Lanes move_of(int32_t arc) const { return broadcast(arc_moves_ ? arc_moves_[arc] : 0.0); }
  // Log weight of a term of to_states or to_cells, edge included.
  HEDGEROW_INLINE Lanes log_weight(const TermTable& table, const std::vector<double>& weights,
                                   int64_t term) const {
    return broadcast(weights[term]) + this->edge_factor(table.arcs[term]);
  }
  // A mean gain, clipped to twice the largest move of an arc: what is subtracted at a position.
  Lanes bound(Lanes mean) const;

  const Automaton& automaton_;
  const double* arc_moves_;
  double largest_move_ = 0.0;  // max_a |arc_moves[a]|
  Numbers alpha_slopes_;       // (C,) of cell_alphas_
  Numbers beta_slopes_;        // (C,) of cell_betas_
  Numbers reached_slopes_;     // (S,) of reached_
  Numbers sums_;               // (E,) slopes of the terms' posteriors, summed; empty if not wanted
  // SumProduct: the moves of the terms' arcs, in the order of either table; empty without moves.
  std::vector<double> moves_to_states_, moves_to_cells_;  // (E,)
  // LogSum: the log-sum of the terms of each cell in backward(), before it is added to the cell's
  // parts.
  Numbers cell_logs_;  // (C,)
};

}  // namespace hedgerow
