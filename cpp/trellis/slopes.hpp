// Means that go through an automaton beside the numbers of Lockstep: what a path gains along a
// direction, on average over the paths that a number sums up.
//
// Beside each number x there is the mean gain a of its paths. Where numbers are added their means
// are weighted by them; where x is multiplied by a factor whose score moves by u, a grows by u.
// With SumProduct what is carried is x a, to which both are linear: the loops of Lockstep serve.
// With LogSum it is a itself.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "trellis/lockstep.hpp"
#include "trellis/semiring.hpp"

namespace hedgerow {

// What all slopes know. Rows of slopes are (S+1,), one for each number of alpha, then what was
// taken out of all their means; moves are (K,), the direction of the nodes at a position, with a
// mean of 0.
class SlopesBase {
 public:
  // arc_moves: (A,) or null
  SlopesBase(const AutomatonScores& scores, const TermWeights& weights, const double* arc_moves);

  // Behind the last position nothing is gained.
  void open();

 protected:
  Lanes move_of(int32_t arc) const { return broadcast(arc_moves_ ? arc_moves_[arc] : 0.0); }
  // Within twice the largest move of an arc: what is taken out at a position to keep means small.
  Lanes bound(Lanes mean) const;

  const Automaton& automaton_;
  const TermWeights& weights_;
  const double* arc_moves_;
  double largest_move_ = 0.0;
  Numbers cells_;    // (C,) beside the cells of Lockstep
  Numbers bars_;     // (C,) beside its bars
  Numbers reached_;  // (S,) beside what it reaches
};

// Each call follows the one of Lockstep of the same name.
class SumSlopes : public SlopesBase {
 public:
  using Steps = Lockstep<SumProduct>;
  SumSlopes(const AutomatonScores& scores, const TermWeights& weights, const double* arc_moves,
            bool sums);

  void open();
  void load_alpha(const Steps& steps, const Packed* slopes);
  void reach(const Steps& steps);
  // probs: (K,) the labels' marginals, to take out the mean by
  void arrive(const Steps& steps, const Packed* alpha, const Packed* moves, const Packed* probs,
              Packed* slopes);
  // After reach_with_marginals. marginals: (K,) what it found; marginal_slopes: (K,)
  void reach_back(const Steps& steps, const Packed* alpha, const Packed* slopes,
                  const Packed* moves, const Packed* marginals, Packed* marginal_slopes);
  // Goes back with `steps`, and sums up the slopes of the terms' posteriors if asked to.
  void backward(Steps& steps);
  // Of the terms' posteriors at one position, before the step back. slopes: (E,)
  void fill_term_slopes(const Steps& steps, Packed* slopes) const;
  // Adds what was summed up since open. arc_sums: (A,)
  void add_arc_sums(double* arc_sums) const;

 private:
  std::vector<double> moves_to_states_, moves_to_cells_;  // (E,) of the terms' arcs, if they move
  std::vector<double> sums_;                              // (E,) slopes
};

class LogSlopes : public SlopesBase {
 public:
  using Steps = Lockstep<LogSum>;
  LogSlopes(const AutomatonScores& scores, const TermWeights& weights, const double* arc_moves,
            bool sums);

  void open();
  void load_alpha(const Steps& steps, const Packed* slopes);
  void reach(const Steps& steps);
  void arrive(const Steps& steps, const Packed* alpha, const Packed* moves, const Packed* probs,
              Packed* slopes);
  void reach_back(const Steps& steps, const Packed* alpha, const Packed* slopes,
                  const Packed* moves, const Packed* marginals, Packed* marginal_slopes);
  void backward(Steps& steps);
  void fill_term_slopes(const Steps& steps, Packed* slopes) const;
  void add_arc_sums(double* arc_sums) const;

 private:
  void sum_cells(const Packed* values);
  Lanes term_score(const Steps& steps, const TermTable& table, const std::vector<double>& weights,
                   int64_t term) const;
  Lanes label_mean(const Packed* alpha, const Packed* slopes, const Packed* probs) const;

  Numbers values_;            // (C,) bars, on the way from the rows of terms to the states
  std::vector<double> sums_;  // (E,)
};

template <class Semiring>
using Slopes = std::conditional_t<Semiring::kLogarithms, LogSlopes, SumSlopes>;

}  // namespace hedgerow
