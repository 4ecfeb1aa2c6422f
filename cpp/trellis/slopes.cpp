#include "trellis/slopes.hpp"

#include <algorithm>
#include <cmath>

#include "trellis/lockstep_loops.hpp"

namespace hedgerow {
namespace {

HEDGEROW_INLINE Lanes lanes(const Packed& packed) { return packed; }

// slopes[k] = the mean gain of the paths through label k at a position times its probability, which
// is the derivative of the marginal but for the mean over all labels; returns that mean, and takes
// it out.
Lanes centre(const Packed* marginals, int n_labels, Packed* slopes) {
  Lanes mean = broadcast(0.0);
  for (int k = 0; k < n_labels; ++k) mean += lanes(slopes[k]);
  for (int k = 0; k < n_labels; ++k) slopes[k] = lanes(slopes[k]) - lanes(marginals[k]) * mean;
  return mean;
}

// How much of a sum a part of it is, from their logarithms.
HEDGEROW_INLINE Lanes share_of(Lanes part, Lanes sum) {
  return LogSum::to_prob(part - if_finite(sum, broadcast(0.0)));
}

// slopes[q] = factor[label of q] * reached[q] + moves[label of q] * numbers[q]
HEDGEROW_CLONES
void fill_slopes(const Automaton& automaton, const Packed* factors, const Packed* reached,
                 const Packed* moves, const Packed* numbers, Packed* slopes) {
  for (int k = 0; k < automaton.n_labels(); ++k) {
    const Lanes factor = factors[k], move = moves[k];
    for (int32_t q = automaton.label_bounds[k]; q < automaton.label_bounds[k + 1]; ++q)
      slopes[q] = factor * lanes(reached[q]) + move * lanes(numbers[q]);
  }
}

// sums[k] = sum over the states of label k of alpha * bars + slopes * beta
HEDGEROW_CLONES
void fill_label_slopes(const Automaton& automaton, const Packed* alpha, const Packed* slopes,
                       const Packed* beta, const Packed* bars, const Packed& scale, Packed* sums) {
  const Lanes factor = scale;
  for (int k = 0; k < automaton.n_labels(); ++k) {
    Lanes before = broadcast(0.0), after = broadcast(0.0);
    for (int32_t q = automaton.label_bounds[k]; q < automaton.label_bounds[k + 1]; ++q) {
      before += lanes(slopes[q]) * lanes(beta[q]);
      after += lanes(alpha[q]) * lanes(bars[q]);
    }
    sums[k] = factor * (before + after);
  }
}

// slopes -= mean * numbers
HEDGEROW_CLONES
void take_out(const Packed& by, const Packed* numbers, int n, Packed* slopes) {
  const Lanes mean = by;
  for (int q = 0; q < n; ++q) slopes[q] = lanes(slopes[q]) - mean * lanes(numbers[q]);
}

// The mean gain over the labels under their marginals, within a label over alpha.
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

}  // namespace

SlopesBase::SlopesBase(const AutomatonScores& scores, const TermWeights& weights,
                       const double* arc_moves)
    : automaton_(scores.automaton),
      weights_(weights),
      arc_moves_(arc_moves),
      cells_(automaton_.n_cells()),
      bars_(automaton_.n_cells()),
      reached_(automaton_.n_states()) {
  for (int a = 0; arc_moves != nullptr && a < automaton_.n_arcs(); ++a)
    largest_move_ = max_of(std::fabs(arc_moves[a]), largest_move_);
}

void SlopesBase::open() { std::fill(bars_.begin(), bars_.end(), Packed(broadcast(0.0))); }

Lanes SlopesBase::bound(Lanes mean) const {
  const Lanes most = broadcast(2.0 * largest_move_), least = broadcast(-2.0 * largest_move_);
  return maximum(minimum(mean, most), least);
}

SumSlopes::SumSlopes(const AutomatonScores& scores, const TermWeights& weights,
                     const double* arc_moves, bool sums)
    : SlopesBase(scores, weights, arc_moves), sums_(sums ? automaton_.n_terms() : 0) {
  if (arc_moves == nullptr) return;
  for (const int32_t arc : automaton_.to_states.arcs) moves_to_states_.push_back(arc_moves[arc]);
  for (const int32_t arc : automaton_.to_cells.arcs) moves_to_cells_.push_back(arc_moves[arc]);
}

void SumSlopes::open() {
  SlopesBase::open();
  std::fill(sums_.begin(), sums_.end(), 0.0);
}

void SumSlopes::load_alpha(const Steps&, const Packed* slopes) {
  std::copy(slopes, slopes + automaton_.n_states(), cells_.begin());
  sum_cells<SumProduct>(automaton_, cells_.data());
}

void SumSlopes::reach(const Steps& steps) {
  Step step =
      step_over(automaton_.to_states, weights_.to_states, steps.pair_factors(), cells_.data());
  if (arc_moves_ == nullptr) {
    fill_rows<SumProduct>(step, reached_.data());
  } else {
    step.moves = moves_to_states_.data();
    step.numbers = steps.cells();
    fill_rows<SumProduct, true>(step, reached_.data());
  }
}

void SumSlopes::arrive(const Steps& steps, const Packed* alpha, const Packed* moves,
                       const Packed* probs, Packed* slopes) {
  slopes[Automaton::kBegin] = broadcast(0.0);
  fill_slopes(automaton_, steps.scaled_factors(), reached_.data(), moves, alpha, slopes);
  Packed& mean = slopes[automaton_.n_states()];
  mean = broadcast(0.0);
  if (arc_moves_ != nullptr) {
    fill_label_mean(automaton_, alpha, slopes, probs, mean);
    mean = bound(mean);
    take_out(mean, alpha, automaton_.n_states(), slopes);
  }
  load_alpha(steps, slopes);
}

void SumSlopes::reach_back(const Steps& steps, const Packed* alpha, const Packed* slopes,
                           const Packed* moves, const Packed* marginals, Packed* marginal_slopes) {
  fill_slopes(automaton_, steps.scaled_factors(), bars_.data(), moves, steps.reached(),
              reached_.data());
  fill_label_slopes(automaton_, alpha, slopes, steps.beta(), bars_.data(), steps.rounding(),
                    marginal_slopes);
  const Packed mean = centre(marginals, automaton_.n_labels(), marginal_slopes) +
                      lanes(slopes[automaton_.n_states()]);
  take_out(mean, steps.reached(), automaton_.n_states(), reached_.data());
}

// The slope of a term's posterior, x weight reached, is
//   (x a) weight reached + x weight (reached b + move reached),
// both of which the loops of Lockstep sum up, but for the weight.
void SumSlopes::backward(Steps& steps) {
  const Packed ones(broadcast(1.0));
  Step back =
      step_over(automaton_.to_cells, weights_.to_cells, steps.pair_factors(), reached_.data());
  back.moves = moves_to_cells_.data();
  back.numbers = steps.reached();
  if (sums_.empty()) {
    arc_moves_ == nullptr ? fill_rows<SumProduct>(back, bars_.data())
                          : fill_rows<SumProduct, true>(back, bars_.data());
    steps.backward();
  } else {
    const TermSums wanted{steps.cells(), ones, sums_.data()};
    arc_moves_ == nullptr ? fill_rows_and_sums<SumProduct>(back, bars_.data(), wanted)
                          : fill_rows_and_sums<SumProduct, true>(back, bars_.data(), wanted);
    steps.backward(cells_.data(), ones, sums_.data());
  }
  spread_cells<SumProduct>(automaton_, bars_.data());
}

void SumSlopes::fill_term_slopes(const Steps& steps, Packed* slopes) const {
  const TermTable& table = automaton_.to_cells;
  table.for_each_term([&](int32_t row, int64_t term) {
    const int32_t arc = table.arcs[term], column = table.columns[term];
    const Lanes number = steps.cells()[row], reached = steps.reached()[column];
    const Lanes gain = lanes(cells_[row]) + move_of(arc) * number;
    const Lanes sum = gain * reached + number * lanes(reached_[column]);
    const double weight = weights_.to_cells[term];
    slopes[term] =
        weight == 0.0 ? broadcast(0.0) : broadcast(weight) * (steps.edge_factor(arc) * sum);
  });
}

// Where a weight is 0, what it was left out of means nothing, and may be of any size.
void SumSlopes::add_arc_sums(double* arc_sums) const {
  const std::vector<int32_t>& arcs = automaton_.to_cells.arcs;
  for (size_t e = 0; e < sums_.size(); ++e) {
    if (weights_.to_cells[e] == 0.0) continue;
    arc_sums[arcs[e]] += weights_.to_cells[e] * sums_[e];
  }
}

LogSlopes::LogSlopes(const AutomatonScores& scores, const TermWeights& weights,
                     const double* arc_moves, bool sums)
    : SlopesBase(scores, weights, arc_moves),
      values_(automaton_.n_cells()),
      sums_(sums ? automaton_.n_terms() : 0) {}

void LogSlopes::open() {
  SlopesBase::open();
  std::fill(sums_.begin(), sums_.end(), 0.0);
}

void LogSlopes::sum_cells(const Packed* values) {
  for (const Automaton::Cell cell : automaton_.sums) {
    const Lanes sum = values[cell.sum];
    cells_[cell.sum] = share_of(values[cell.left], sum) * lanes(cells_[cell.left]) +
                       share_of(values[cell.right], sum) * lanes(cells_[cell.right]);
  }
}

void LogSlopes::load_alpha(const Steps& steps, const Packed* slopes) {
  std::copy(slopes, slopes + automaton_.n_states(), cells_.begin());
  sum_cells(steps.cells());
}

Lanes LogSlopes::term_score(const Steps& steps, const TermTable& table,
                            const std::vector<double>& weights, int64_t term) const {
  return broadcast(weights[term]) + steps.edge_factor(table.arcs[term]);
}

void LogSlopes::reach(const Steps& steps) {
  const TermTable& table = automaton_.to_states;
  std::fill(reached_.begin(), reached_.end(), Packed(broadcast(0.0)));
  table.for_each_term([&](int32_t row, int64_t term) {
    const int32_t column = table.columns[term];
    const Lanes score =
        term_score(steps, table, weights_.to_states, term) + lanes(steps.cells()[column]);
    reached_[row] +=
        share_of(score, steps.reached()[row]) * (lanes(cells_[column]) + move_of(table.arcs[term]));
  });
}

void LogSlopes::arrive(const Steps& steps, const Packed* alpha, const Packed* moves,
                       const Packed* probs, Packed* slopes) {
  slopes[Automaton::kBegin] = broadcast(0.0);
  for (int k = 0; k < automaton_.n_labels(); ++k)
    for (int32_t q = automaton_.label_bounds[k]; q < automaton_.label_bounds[k + 1]; ++q)
      slopes[q] = lanes(reached_[q]) + lanes(moves[k]);
  Packed& mean = slopes[automaton_.n_states()];
  mean = broadcast(0.0);
  if (arc_moves_ != nullptr) {
    mean = bound(label_mean(alpha, slopes, probs));
    for (int q = 0; q < automaton_.n_states(); ++q) slopes[q] = lanes(slopes[q]) - lanes(mean);
  }
  load_alpha(steps, slopes);
}

Lanes LogSlopes::label_mean(const Packed* alpha, const Packed* slopes, const Packed* probs) const {
  Lanes mean = broadcast(0.0);
  for (int k = 0; k < automaton_.n_labels(); ++k) {
    const int32_t first = automaton_.label_bounds[k], end = automaton_.label_bounds[k + 1];
    Lanes total = broadcast(LogSum::kZero), gain = broadcast(0.0);
    for (int32_t q = first; q < end; ++q) total = LogSum::add(total, alpha[q]);
    for (int32_t q = first; q < end; ++q) gain += share_of(alpha[q], total) * lanes(slopes[q]);
    mean += lanes(probs[k]) * gain;
  }
  return mean;
}

void LogSlopes::reach_back(const Steps& steps, const Packed* alpha, const Packed* slopes,
                           const Packed* moves, const Packed* marginals, Packed* marginal_slopes) {
  const Lanes rounding = steps.rounding();
  for (int k = 0; k < automaton_.n_labels(); ++k) {
    Lanes sum = broadcast(0.0);
    for (int32_t q = automaton_.label_bounds[k]; q < automaton_.label_bounds[k + 1]; ++q) {
      const Lanes score = lanes(alpha[q]) + lanes(steps.beta()[q]);
      sum += LogSum::to_prob(score + rounding) * (lanes(slopes[q]) + lanes(bars_[q]));
    }
    marginal_slopes[k] = sum;
  }
  const Lanes mean = centre(marginals, automaton_.n_labels(), marginal_slopes) +
                     lanes(slopes[automaton_.n_states()]);
  for (int k = 0; k < automaton_.n_labels(); ++k)
    for (int32_t q = automaton_.label_bounds[k]; q < automaton_.label_bounds[k + 1]; ++q)
      reached_[q] = lanes(bars_[q]) + (lanes(moves[k]) - mean);
}

void LogSlopes::backward(Steps& steps) {
  const TermTable& table = automaton_.to_cells;
  fill_rows<LogSum>(step_over(table, weights_.to_cells, steps.pair_factors(), steps.reached()),
                    values_.data());
  SlopesBase::open();
  table.for_each_term([&](int32_t row, int64_t term) {
    const int32_t column = table.columns[term];
    const Lanes score =
        term_score(steps, table, weights_.to_cells, term) + lanes(steps.reached()[column]);
    const Lanes gain = lanes(reached_[column]) + move_of(table.arcs[term]);
    bars_[row] += share_of(score, values_[row]) * gain;
    if (!sums_.empty())
      sums_[term] += sum_lanes(LogSum::to_prob(lanes(steps.cells()[row]) + score) *
                               (lanes(cells_[row]) + gain));
  });
  const auto join = [&](int32_t part, int32_t whole) {
    const Lanes sum = LogSum::add(values_[part], values_[whole]);
    bars_[part] = share_of(values_[part], sum) * lanes(bars_[part]) +
                  share_of(values_[whole], sum) * lanes(bars_[whole]);
    values_[part] = sum;
  };
  for (auto cell = automaton_.sums.rbegin(); cell != automaton_.sums.rend(); ++cell) {
    join(cell->left, cell->sum);
    join(cell->right, cell->sum);
  }
  steps.backward();
}

void LogSlopes::fill_term_slopes(const Steps& steps, Packed* slopes) const {
  const TermTable& table = automaton_.to_cells;
  table.for_each_term([&](int32_t row, int64_t term) {
    const int32_t column = table.columns[term];
    const Lanes score =
        term_score(steps, table, weights_.to_cells, term) + lanes(steps.reached()[column]);
    const Lanes gain = lanes(reached_[column]) + move_of(table.arcs[term]);
    slopes[term] = LogSum::to_prob(lanes(steps.cells()[row]) + score) * (lanes(cells_[row]) + gain);
  });
}

void LogSlopes::add_arc_sums(double* arc_sums) const {
  for (size_t e = 0; e < sums_.size(); ++e) arc_sums[automaton_.to_cells.arcs[e]] += sums_[e];
}

}  // namespace hedgerow
