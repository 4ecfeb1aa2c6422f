#include "trellis/slopes.hpp"

#include <algorithm>
#include <cmath>

#include "trellis/lockstep_loops.hpp"

namespace hedgerow {
namespace {

HEDGEROW_INLINE Lanes lanes(const Packed& packed) { return packed; }

// From slopes[k] = marginals[k] * mean gain of the paths through label k, (K,), to the derivative
// of the marginal, marginals[k] * (mean gain of label k - mean gain of all paths); returns the
// latter.
Lanes centre(const Packed* marginals, int n_labels, Packed* slopes) {
  Lanes mean = broadcast(0.0);
  for (int k = 0; k < n_labels; ++k) mean += lanes(slopes[k]);
  for (int k = 0; k < n_labels; ++k) slopes[k] = lanes(slopes[k]) - lanes(marginals[k]) * mean;
  return mean;
}

// part / sum from their logarithms, with 0 / 0 = 0.
HEDGEROW_INLINE Lanes share_of(Lanes part, Lanes sum) {
  return LogSum::to_prob(part - replace_minus_infinity(sum, broadcast(0.0)));
}

// slopes[q] = factors[label of q] * reached[q] + moves[label of q] * numbers[q]. factors, moves:
// (K,), the others: (S,)
HEDGEROW_CLONES
void fill_slopes(const Automaton& automaton, const Packed* factors, const Packed* reached,
                 const Packed* moves, const Packed* numbers, Packed* slopes) {
  for (int k = 0; k < automaton.n_labels(); ++k) {
    const Lanes factor = factors[k], move = moves[k];
    for (int32_t q = automaton.label_bounds[k]; q < automaton.label_bounds[k + 1]; ++q)
      slopes[q] = factor * lanes(reached[q]) + move * lanes(numbers[q]);
  }
}

// sums[k] = scale * sum over the states q of label k of (alpha_slopes[q] * beta[q] +
// alpha[q] * beta_slopes[q]). sums: (K,), the others: (S,)
HEDGEROW_CLONES
void fill_label_slopes(const Automaton& automaton, const Packed* alpha, const Packed* alpha_slopes,
                       const Packed* beta, const Packed* beta_slopes, const Packed& scale,
                       Packed* sums) {
  const Lanes factor = scale;
  for (int k = 0; k < automaton.n_labels(); ++k) {
    Lanes before = broadcast(0.0), after = broadcast(0.0);
    for (int32_t q = automaton.label_bounds[k]; q < automaton.label_bounds[k + 1]; ++q) {
      before += lanes(alpha_slopes[q]) * lanes(beta[q]);
      after += lanes(alpha[q]) * lanes(beta_slopes[q]);
    }
    sums[k] = factor * (before + after);
  }
}

// slopes[q] -= mean * numbers[q], q = 0 .. n-1
HEDGEROW_CLONES
void subtract_mean(const Packed& by, const Packed* numbers, int n, Packed* slopes) {
  const Lanes mean = by;
  for (int q = 0; q < n; ++q) slopes[q] = lanes(slopes[q]) - mean * lanes(numbers[q]);
}

// out = sum_k probs[k] * (sum of slopes over the states of label k) / (sum of alpha over them): the
// mean gain over the labels by their marginals, within a label by alpha.
HEDGEROW_CLONES
void fill_label_mean(const Automaton& automaton, const Packed* alpha, const Packed* slopes,
                     const Packed* probs, Packed& out) {
  Lanes mean = broadcast(0.0);
  for (int k = 0; k < automaton.n_labels(); ++k) {
    Lanes total = broadcast(0.0), gain = broadcast(0.0);
    for (int32_t q = automaton.label_bounds[k]; q < automaton.label_bounds[k + 1]; ++q) {
      total += lanes(alpha[q]);
      gain += lanes(slopes[q]);
    }
    mean += lanes(probs[k]) * (gain / one_if_zero(total));
  }
  out = mean;
}

// The same from logarithms of alpha, with slopes that are mean gains.
Lanes log_label_mean(const Automaton& automaton, const Packed* alpha, const Packed* slopes,
                     const Packed* probs) {
  Lanes mean = broadcast(0.0);
  for (int k = 0; k < automaton.n_labels(); ++k) {
    const int32_t first = automaton.label_bounds[k], end = automaton.label_bounds[k + 1];
    Lanes total = broadcast(LogSum::kZero), gain = broadcast(0.0);
    for (int32_t q = first; q < end; ++q) total = LogSum::add(total, alpha[q]);
    for (int32_t q = first; q < end; ++q) gain += share_of(alpha[q], total) * lanes(slopes[q]);
    mean += lanes(probs[k]) * gain;
  }
  return mean;
}

}  // namespace

// SumProduct: slopes are derivatives, x a.

template <>
void LockstepSlopes<SumProduct>::sum_cell_slopes() {
  sum_cells<SumProduct>(automaton_, alpha_slopes_.data());
}

// d reached[q] = sum over the terms of q of w (d alpha + move of the arc * alpha) over the cell.
template <>
void LockstepSlopes<SumProduct>::reach_slopes() {
  Step step = step_over(automaton_.to_states, weights_.to_states, edge_factors_, scores_.by_arc,
                        alpha_slopes_.data());
  if (arc_moves_ == nullptr) {
    fill_rows<SumProduct>(step, reached_slopes_.data());
  } else {
    step.moves = moves_to_states_.data();
    step.numbers = cell_alphas_.data();
    fill_rows<SumProduct, true>(step, reached_slopes_.data());
  }
}

// d alpha[q] = factor d reached[q] + move of the label * alpha[q] - mean * alpha[q].
template <>
void LockstepSlopes<SumProduct>::arrive_slopes(const Packed* moves, const Packed* probs,
                                               Packed* row) {
  const Packed* alpha = row;
  Packed* slopes = row + n_states_;
  Packed& mean = slopes[n_states_];
  slopes[Automaton::kBegin] = broadcast(0.0);
  fill_slopes(automaton_, scaled_factors_.data(), reached_slopes_.data(), moves, alpha, slopes);
  mean = broadcast(0.0);
  if (arc_moves_ != nullptr) {
    fill_label_mean(automaton_, alpha, slopes, probs, mean);
    mean = bound(mean);
    subtract_mean(mean, alpha, n_states_, slopes);
  }
}

// d reached[q] = factor d beta[q] + (move of the label - mean) * reached[q].
template <>
void LockstepSlopes<SumProduct>::reach_back_slopes(const Packed* row, const Packed* moves,
                                                   const Packed* marginals,
                                                   Packed* marginal_slopes) {
  const Packed* slopes = row + n_states_;
  fill_slopes(automaton_, scaled_factors_.data(), beta_slopes_.data(), moves, reached_.data(),
              reached_slopes_.data());
  fill_label_slopes(automaton_, row, slopes, beta(), beta_slopes_.data(), rounding_,
                    marginal_slopes);
  const Packed mean =
      centre(marginals, automaton_.n_labels(), marginal_slopes) + lanes(slopes[n_states_]);
  subtract_mean(mean, reached_.data(), n_states_, reached_slopes_.data());
}

// d beta of a cell = sum over its terms of w (d reached + move of the arc * reached), then the d
// beta of a cell is added to those of its parts. The posterior of a term is x w reached, x the sum
// of alpha over its cell; of its slope,
//   x w (d reached + move of the arc * reached) + dx w reached,
// the first part is added to the sums here, the second by Lockstep::backward, both without w.
template <>
void LockstepSlopes<SumProduct>::backward_slopes() {
  const Packed ones(broadcast(1.0));
  Step back = step_over(automaton_.to_cells, weights_.to_cells, edge_factors_, scores_.by_arc,
                        reached_slopes_.data());
  back.moves = moves_to_cells_.data();
  back.numbers = reached_.data();
  if (sums_.empty()) {
    arc_moves_ == nullptr ? fill_rows<SumProduct>(back, beta_slopes_.data())
                          : fill_rows<SumProduct, true>(back, beta_slopes_.data());
  } else {
    const TermSums wanted{cell_alphas_.data(), ones, sums_.data()};
    arc_moves_ == nullptr ? fill_rows_and_sums<SumProduct>(back, beta_slopes_.data(), wanted)
                          : fill_rows_and_sums<SumProduct, true>(back, beta_slopes_.data(), wanted);
  }
  spread_cells<SumProduct>(automaton_, beta_slopes_.data());
}

template <>
HEDGEROW_INLINE Lanes LockstepSlopes<SumProduct>::term_slope(const TermTable& to_cells, int32_t row,
                                                             int64_t term) const {
  const int32_t arc = to_cells.arcs[term], column = to_cells.columns[term];
  const Lanes number = cell_alphas_[row], reached = reached_[column];
  const Lanes gain = lanes(alpha_slopes_[row]) + move_of(arc) * number;
  const Lanes sum = gain * reached + number * lanes(reached_slopes_[column]);
  const double weight = weights_.to_cells[term];
  return weight == 0.0 ? broadcast(0.0) : broadcast(weight) * (edge_factor(arc) * sum);
}

// LogSum: numbers are logarithms, slopes are mean gains. Below, x is the number of which a
// logarithm is kept.

// a[sum] = (x[left] a[left] + x[right] a[right]) / x[sum].
template <>
void LockstepSlopes<LogSum>::sum_cell_slopes() {
  for (const Automaton::Cell cell : automaton_.sums) {
    const Lanes sum = cell_alphas_[cell.sum];
    alpha_slopes_[cell.sum] =
        share_of(cell_alphas_[cell.left], sum) * lanes(alpha_slopes_[cell.left]) +
        share_of(cell_alphas_[cell.right], sum) * lanes(alpha_slopes_[cell.right]);
  }
}

// a[q] = sum over the terms of q of (w x / reached[q]) (a of the cell + move of the arc).
template <>
void LockstepSlopes<LogSum>::reach_slopes() {
  const TermTable& table = automaton_.to_states;
  std::fill(reached_slopes_.begin(), reached_slopes_.end(), Packed(broadcast(0.0)));
  table.for_each_term([&](int32_t row, int64_t term) {
    const int32_t column = table.columns[term];
    const Lanes score = log_weight(table, weights_.to_states, term) + lanes(cell_alphas_[column]);
    reached_slopes_[row] +=
        share_of(score, reached_[row]) * (lanes(alpha_slopes_[column]) + move_of(table.arcs[term]));
  });
}

// a[q] = a of reached[q] + move of the label - mean.
template <>
void LockstepSlopes<LogSum>::arrive_slopes(const Packed* moves, const Packed* probs, Packed* row) {
  const Packed* alpha = row;
  Packed* slopes = row + n_states_;
  Packed& mean = slopes[n_states_];
  slopes[Automaton::kBegin] = broadcast(0.0);
  for (int k = 0; k < automaton_.n_labels(); ++k)
    for (int32_t q = automaton_.label_bounds[k]; q < automaton_.label_bounds[k + 1]; ++q)
      slopes[q] = lanes(reached_slopes_[q]) + lanes(moves[k]);
  mean = broadcast(0.0);
  if (arc_moves_ != nullptr) {
    mean = bound(log_label_mean(automaton_, alpha, slopes, probs));
    for (int q = 0; q < n_states_; ++q) slopes[q] = lanes(slopes[q]) - lanes(mean);
  }
}

// a of reached[q] = a of beta[q] + move of the label - mean.
template <>
void LockstepSlopes<LogSum>::reach_back_slopes(const Packed* row, const Packed* moves,
                                               const Packed* marginals, Packed* marginal_slopes) {
  const Packed *alpha = row, *slopes = row + n_states_;
  const Lanes rounding = rounding_;
  for (int k = 0; k < automaton_.n_labels(); ++k) {
    Lanes sum = broadcast(0.0);
    for (int32_t q = automaton_.label_bounds[k]; q < automaton_.label_bounds[k + 1]; ++q) {
      const Lanes score = lanes(alpha[q]) + lanes(beta()[q]);
      sum += LogSum::to_prob(score + rounding) * (lanes(slopes[q]) + lanes(beta_slopes_[q]));
    }
    marginal_slopes[k] = sum;
  }
  const Lanes mean =
      centre(marginals, automaton_.n_labels(), marginal_slopes) + lanes(slopes[n_states_]);
  for (int k = 0; k < automaton_.n_labels(); ++k)
    for (int32_t q = automaton_.label_bounds[k]; q < automaton_.label_bounds[k + 1]; ++q)
      reached_slopes_[q] = lanes(beta_slopes_[q]) + (lanes(moves[k]) - mean);
}

template <>
HEDGEROW_INLINE Lanes LockstepSlopes<LogSum>::term_slope(const TermTable& to_cells, int32_t row,
                                                         int64_t term) const {
  const int32_t column = to_cells.columns[term];
  const Lanes score = log_weight(to_cells, weights_.to_cells, term) + lanes(reached_[column]);
  const Lanes gain = lanes(reached_slopes_[column]) + move_of(to_cells.arcs[term]);
  return LogSum::to_prob(lanes(cell_alphas_[row]) + score) * (lanes(alpha_slopes_[row]) + gain);
}

// As Lockstep::backward, with x of the cells in cell_logs_: first over the terms of each cell,
//   x[cell] = sum of w reached,  a[cell] = sum of (w reached / x[cell]) (a of reached + move),
// then from each cell to its parts, x[part] += x[cell], whose mean gains are averaged by x.
template <>
void LockstepSlopes<LogSum>::backward_slopes() {
  const TermTable& table = automaton_.to_cells;
  fill_rows<LogSum>(
      step_over(table, weights_.to_cells, edge_factors_, scores_.by_arc, reached_.data()),
      cell_logs_.data());
  std::fill(beta_slopes_.begin(), beta_slopes_.end(), Packed(broadcast(0.0)));
  const Packed *reached = reached_.data(), *reached_slopes = reached_slopes_.data();
  const Packed* logs = cell_logs_.data();
  Packed* slopes = beta_slopes_.data();
  Packed* sums = sums_.empty() ? nullptr : sums_.data();
  table.for_each_term([&](int32_t row, int64_t term) {
    const int32_t column = table.columns[term];
    const Lanes score = log_weight(table, weights_.to_cells, term) + lanes(reached[column]);
    const Lanes gain = lanes(reached_slopes[column]) + move_of(table.arcs[term]);
    slopes[row] += share_of(score, logs[row]) * gain;
    if (sums != nullptr) sums[term] += term_slope(table, row, term);
  });
  const auto add_to_part = [&](int32_t part, int32_t whole) {
    const Lanes sum = LogSum::add(cell_logs_[part], cell_logs_[whole]);
    beta_slopes_[part] = share_of(cell_logs_[part], sum) * lanes(beta_slopes_[part]) +
                         share_of(cell_logs_[whole], sum) * lanes(beta_slopes_[whole]);
    cell_logs_[part] = sum;
  };
  for (auto cell = automaton_.sums.rbegin(); cell != automaton_.sums.rend(); ++cell) {
    add_to_part(cell->left, cell->sum);
    add_to_part(cell->right, cell->sum);
  }
}

// For both semirings: each step of Lockstep with that of its slopes.

template <class Semiring>
LockstepSlopes<Semiring>::LockstepSlopes(const AutomatonScores& scores, const TermWeights& weights,
                                         const double* arc_moves, bool sums)
    : Lockstep<Semiring>(scores, weights),
      automaton_(scores.automaton),
      arc_moves_(arc_moves),
      alpha_slopes_(scores.automaton.n_cells()),
      beta_slopes_(scores.automaton.n_cells()),
      reached_slopes_(scores.automaton.n_states()),
      sums_(sums ? scores.automaton.n_terms() : 0),
      cell_logs_(Semiring::kLogarithms ? scores.automaton.n_cells() : 0) {
  if (arc_moves == nullptr) return;
  for (int a = 0; a < automaton_.n_arcs(); ++a)
    largest_move_ = max_of(std::fabs(arc_moves[a]), largest_move_);
  if constexpr (!Semiring::kLogarithms) {
    for (const int32_t arc : automaton_.to_states.arcs) moves_to_states_.push_back(arc_moves[arc]);
    for (const int32_t arc : automaton_.to_cells.arcs) moves_to_cells_.push_back(arc_moves[arc]);
  }
}

// After the last position, all mean gains are 0.
template <class Semiring>
void LockstepSlopes<Semiring>::open(const Group& group) {
  Lockstep<Semiring>::open(group);
  std::fill(beta_slopes_.begin(), beta_slopes_.end(), Packed(broadcast(0.0)));
  std::fill(sums_.begin(), sums_.end(), Packed(broadcast(0.0)));
}

template <class Semiring>
void LockstepSlopes<Semiring>::fill_begin(Packed* row) const {
  const int n_states = this->n_states_;
  Lockstep<Semiring>::fill_begin(row);
  std::fill(row + n_states, row + 2 * n_states + 1, Packed(broadcast(0.0)));
}

template <class Semiring>
void LockstepSlopes<Semiring>::load_row(const Packed* row) {
  this->load_alpha(row);
  load_slopes(row + this->n_states_);
}

template <class Semiring>
void LockstepSlopes<Semiring>::load_slopes(const Packed* slopes) {
  std::copy(slopes, slopes + this->n_states_, alpha_slopes_.begin());
  sum_cell_slopes();
}

template <class Semiring>
Lanes LockstepSlopes<Semiring>::forward(int64_t t, const Packed* factors, const Packed& norm_before,
                                        const Packed* moves, const Packed* probs, Packed* row) {
  this->reach();
  reach_slopes();  // reads alpha_{t-1}, which arrive replaces
  const Packed norm = this->arrive(t, factors, norm_before, row);
  arrive_slopes(moves, probs, row);
  load_slopes(row + this->n_states_);
  return norm;
}

template <class Semiring>
void LockstepSlopes<Semiring>::reach_with_marginals(int64_t t, const Packed* factors,
                                                    const Packed& norm_before, const Packed& norm,
                                                    const Packed* row, const Packed* moves,
                                                    Packed* marginals, Packed* marginal_slopes) {
  Lockstep<Semiring>::reach_with_marginals(t, factors, norm_before, norm, row, marginals);
  reach_back_slopes(row, moves, marginals, marginal_slopes);
}

template <class Semiring>
void LockstepSlopes<Semiring>::fill_term_slopes(Packed* slopes) const {
  const TermTable& table = automaton_.to_cells;
  table.for_each_term(
      [&](int32_t row, int64_t term) { slopes[term] = term_slope(table, row, term); });
}

template <class Semiring>
void LockstepSlopes<Semiring>::backward() {
  backward_slopes();
  if constexpr (!Semiring::kLogarithms) {
    const Packed ones(broadcast(1.0));
    if (!sums_.empty())
      return Lockstep<Semiring>::backward(alpha_slopes_.data(), ones, sums_.data());
  }
  Lockstep<Semiring>::backward();
}

// With SumProduct the sums still lack the weight of the arc. Where it is 0 they are meaningless,
// and may be of any size.
template <class Semiring>
void LockstepSlopes<Semiring>::add_arc_sums(const SumTable& arc_sums) const {
  const std::vector<int32_t>& arcs = automaton_.to_cells.arcs;
  for (size_t e = 0; e < sums_.size(); ++e) {
    const double weight = Semiring::kLogarithms ? 1.0 : this->weights_.to_cells[e];
    for (int l = 0; l < kLanes && weight != 0.0; ++l)
      if (this->group().live[l]) arc_sums.add(arcs[e], weight * sums_[e].values[l]);
  }
}

template <class Semiring>
Lanes LockstepSlopes<Semiring>::bound(Lanes mean) const {
  const Lanes most = broadcast(2.0 * largest_move_), least = broadcast(-2.0 * largest_move_);
  return maximum(minimum(mean, most), least);
}

template class LockstepSlopes<SumProduct>;
template class LockstepSlopes<LogSum>;

}  // namespace hedgerow
