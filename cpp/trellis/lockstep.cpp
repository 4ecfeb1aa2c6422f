#include "trellis/lockstep.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "trellis/lockstep_loops.hpp"
#include "trellis/scaled.hpp"

namespace hedgerow {

HEDGEROW_CLONES
void add_by_place(const Packed* values, const std::vector<int32_t>& places, Packed* sums) {
  const int32_t* place = places.data();
  const int64_t n = std::ssize(places);
  for (int64_t e = 0; e < n; ++e) sums[place[e]] += values[e];
}

TermWeights::TermWeights(const AutomatonScores& scores, bool logarithms) {
  const Automaton& automaton = scores.automaton;
  double smallest = kInfinity, largest = -kInfinity;
  for (int a = 0; a < automaton.n_arcs(); ++a) {
    if (!(scores.arcs[a] < kInfinity))
      throw std::invalid_argument("the score of arc " + std::to_string(a) +
                                  " is NaN or +inf; scores must be finite numbers or -inf");
    if (scores.arcs[a] == -kInfinity) continue;
    smallest = min_of(scores.arcs[a], smallest);
    largest = max_of(scores.arcs[a], largest);
  }
  if (largest > -kInfinity) spread = largest - smallest;
  if (largest > -kInfinity && !logarithms) shift = largest;
  by_arc.assign(scores.arcs, scores.arcs + automaton.n_arcs());
  if (!logarithms)
    for (double& value : by_arc) value = std::exp(value - shift);
  const auto spread_over = [&](const TermTable& table) {
    std::vector<double> weights(table.arcs.size());
    for (size_t e = 0; e < weights.size(); ++e) weights[e] = by_arc[table.arcs[e]];
    return weights;
  };
  to_states = spread_over(automaton.to_states);
  to_cells = spread_over(automaton.to_cells);
}

template <class Semiring>
Lockstep<Semiring>::Lockstep(const AutomatonScores& scores, const TermWeights& weights)
    : scores_(scores),
      weights_(weights),
      n_states_(scores.automaton.n_states()),
      scaled_factors_(scores.automaton.n_labels()),
      cell_alphas_(scores.automaton.n_cells()),
      cell_betas_(scores.automaton.n_cells()),
      reached_(n_states_),
      nothing_(std::max<int64_t>(scores.automaton.n_labels(), scores.n_edges()), -kInfinity) {
  if (scores.edges != nullptr) own_edge_factors_.resize(scores.n_edges() + 1);
  edge_factors_ = scores.edges != nullptr ? own_edge_factors_.data() : nullptr;
}

template <class Semiring>
void Lockstep<Semiring>::open(const Group& group) {
  group_ = group;
  std::fill(cell_betas_.begin(), cell_betas_.end(), Packed(broadcast(Semiring::kZero)));
  std::fill(refused_, refused_ + kLanes, false);
  rounding_ = broadcast(Semiring::kOne);
}

template <class Semiring>
void Lockstep<Semiring>::fill_factors(int64_t t, Packed* factors) {
  const int64_t n_labels = scores_.automaton.n_labels();
  double shifts[kLanes] = {}, spreads[kLanes] = {};
  const double* rows[kLanes];
  Extent extent;
  Packed n_bad;
  const auto row_of = [&](int l, const double* scores, int64_t size) {
    if (!is_live(l, t)) return static_cast<const double*>(nothing_.data());
    return scores + (scores_.offsets[group_.sequences[l]] + t) * size;
  };
  for (int l = 0; l < kLanes; ++l) rows[l] = row_of(l, scores_.nodes, n_labels);
  fill_factor_rows<Semiring, false>(rows, n_labels, factors, extent, n_bad);
  add_extent("a node", t, extent, n_bad, shifts, spreads);
  // Edges into a first position are not read: no arc but those from state 0 is taken there.
  const int64_t n_edges = scores_.n_edges();
  if (edge_factors_ != nullptr) edge_factors_[n_edges] = broadcast(Semiring::kOne);
  if (edge_factors_ != nullptr && t > 0) {
    for (int l = 0; l < kLanes; ++l) rows[l] = row_of(l, scores_.edges, n_edges);
    fill_factor_rows<Semiring, true>(rows, n_edges, edge_factors_, extent, n_bad);
    add_extent("an edge", t, extent, n_bad, shifts, spreads);
  } else if (edge_factors_ != nullptr) {
    std::fill_n(edge_factors_, n_edges, Packed(broadcast(Semiring::kOne)));
  }
  shifts_ = load(shifts) + broadcast(weights_.shift);
  if constexpr (!Semiring::kLogarithms)
    for (int l = 0; l < kLanes; ++l)
      if (is_live(l, t) && !(spreads[l] + weights_.spread <= kLargestSpread)) refused_[l] = true;
}

template <class Semiring>
void Lockstep<Semiring>::add_extent(const char* what, int64_t t, const Extent& extent,
                                    const Packed& n_bad, double* shifts, double* spreads) {
  for (int l = 0; l < kLanes; ++l) {
    if (!is_live(l, t)) continue;
    const double largest = extent.size.values[l];
    if (n_bad.values[l] > 0) throw_bad_score(what, t, group_.sequences[l]);
    if (largest == -kInfinity) continue;  // all factors are 0, and forward throws NoPath
    shifts[l] += largest;
    spreads[l] += largest - extent.smallest.values[l];
  }
}

template <class Semiring>
void Lockstep<Semiring>::fill_begin(Packed* alpha) const {
  std::fill(alpha, alpha + n_states_, Packed(broadcast(Semiring::kZero)));
  alpha[Automaton::kBegin] = broadcast(Semiring::kOne);
}

template <class Semiring>
void Lockstep<Semiring>::load_alpha(const Packed* alpha) {
  std::copy(alpha, alpha + n_states_, cell_alphas_.begin());
  sum_cells<Semiring>(scores_.automaton, cell_alphas_.data());
}

template <class Semiring>
void Lockstep<Semiring>::scale_factors(const Packed* factors, Lanes by) {
  scale<Semiring>(by, static_cast<int>(scaled_factors_.size()), factors, scaled_factors_.data());
}

template <class Semiring>
void Lockstep<Semiring>::reach() {
  fill_rows<Semiring>(step_over(scores_.automaton.to_states, weights_.to_states, edge_factors_,
                                scores_.by_arc, cell_alphas_.data()),
                      reached_.data());
}

template <class Semiring>
Lanes Lockstep<Semiring>::arrive(int64_t t, const Packed* factors, const Packed& norm_before,
                                 Packed* alpha) {
  const Automaton& automaton = scores_.automaton;
  scale_factors(factors, invert<Semiring>(norm_before));
  Extent extent;
  fill_alpha<Semiring>(automaton, scaled_factors_.data(), reached_.data(), alpha,
                       cell_alphas_.data(), extent);
  sum_cells<Semiring>(automaton, cell_alphas_.data());
  for (int l = 0; l < kLanes; ++l) {
    const double total = extent.size.values[l];
    if (!is_live(l, t) || refused_[l]) continue;
    if (total == Semiring::kZero) throw_no_path(t, group_.sequences[l]);
    if (!Semiring::kLogarithms &&
        !(total >= kSmallest && extent.smallest.values[l] >= kSmallest * total))
      refused_[l] = true;
  }
  return extent.size;
}

template <class Semiring>
void Lockstep<Semiring>::begin_beta(int64_t t, const Packed& norm) {
  double ending[kLanes];
  bool any = false;
  for (int l = 0; l < kLanes; ++l) {
    const bool ends = group_.live[l] && t == group_.lengths[l] - 1;
    ending[l] = ends ? Semiring::invert(norm.values[l]) : Semiring::kZero;
    any = any || ends;
  }
  if (!any) return;
  for (int q = 0; q < n_states_; ++q) cell_betas_[q] = Semiring::add(cell_betas_[q], load(ending));
}

// Refuses the lanes whose beta_t leaves the range of SumProduct. extent: largest and smallest
// number of beta_t; scale: what it has to be multiplied by to be of the order of 1; step: what the
// step back multiplies it by, apart from factors of at most 1. States that no path leads to count
// too: their beta may be of any size.
template <class Semiring>
void Lockstep<Semiring>::refuse_beyond(int64_t t, const Extent& extent, const Packed& scale,
                                       const Packed& step) {
  if constexpr (Semiring::kLogarithms) return;
  for (int l = 0; l < kLanes; ++l)
    if (is_live(l, t) && !(extent.smallest.values[l] * scale.values[l] >= kSmallest &&
                           extent.size.values[l] * scale.values[l] <= 1.0 / kSmallest &&
                           extent.size.values[l] * step.values[l] <= kLargestReached))
      refused_[l] = true;
}

template <class Semiring>
void Lockstep<Semiring>::reach_by_largest(int64_t t, const Packed* factors) {
  Extent extent;
  measure_row<Semiring>(cell_betas_.data(), n_states_, extent);
  const Packed scale = invert<Semiring>(extent.size);
  largest_ = extent.size;
  refuse_beyond(t, extent, scale, scale);
  scale_factors(factors, scale);
  fill_reached<Semiring>(scores_.automaton, scaled_factors_.data(), cell_betas_.data(),
                         reached_.data());
}

template <class Semiring>
void Lockstep<Semiring>::copy_beta(Packed* row) const {
  if constexpr (Semiring::kLogarithms) {
    std::copy(cell_betas_.begin(), cell_betas_.begin() + n_states_, row);
  } else {
    double powers[kLanes];
    for (int l = 0; l < kLanes; ++l) {
      int exponent = 0;
      std::frexp(largest_.values[l], &exponent);
      powers[l] = std::ldexp(1.0, -exponent);
    }
    scale<Semiring>(load(powers), n_states_, cell_betas_.data(), row);
  }
}

template <class Semiring>
void Lockstep<Semiring>::reach_with_marginals(int64_t t, const Packed* factors,
                                              const Packed& norm_before, const Packed& norm,
                                              const Packed* alpha, Packed* marginals)
  requires Semiring::kSums
{
  const int n_labels = scores_.automaton.n_labels();
  const Packed step = Semiring::multiply(rounding_, invert<Semiring>(norm_before));
  scale_factors(factors, step);
  Extent extent;
  fill_reached_and_marginals<Semiring>(scores_.automaton, scaled_factors_.data(), alpha,
                                       cell_betas_.data(), reached_.data(), marginals, extent);
  refuse_beyond(t, extent, norm, step);
  Packed total(broadcast(0.0));
  for (int k = 0; k < n_labels; ++k) total += marginals[k];
  for (int l = 0; l < kLanes && !Semiring::kLogarithms; ++l)
    if (is_live(l, t) && !(total.values[l] > 0.5 && total.values[l] < 2.0)) refused_[l] = true;
  rounding_ = invert<SumProduct>(total);
  scale<SumProduct>(rounding_, n_labels, marginals, marginals);
  if constexpr (Semiring::kLogarithms)
    for (double& value : rounding_.values) value = std::log(value);
}

template <class Semiring>
void Lockstep<Semiring>::backward() {
  const Automaton& automaton = scores_.automaton;
  fill_rows<Semiring>(step_over(automaton.to_cells, weights_.to_cells, edge_factors_,
                                scores_.by_arc, reached_.data()),
                      cell_betas_.data());
  spread_cells<Semiring>(automaton, cell_betas_.data());
}

template <class Semiring>
void Lockstep<Semiring>::backward(const Packed* cell_values, const Packed& shares, Packed* sums)
  requires Semiring::kSums
{
  const Automaton& automaton = scores_.automaton;
  fill_rows_and_sums<Semiring>(step_over(automaton.to_cells, weights_.to_cells, edge_factors_,
                                         scores_.by_arc, reached_.data()),
                               cell_betas_.data(), TermSums{cell_values, shares, sums});
  spread_cells<Semiring>(automaton, cell_betas_.data());
}

template <class Semiring>
void Lockstep<Semiring>::fill_term_probs(Packed* probs) const
  requires Semiring::kSums
{
  fill_probs<Semiring>(step_over(scores_.automaton.to_cells, weights_.to_cells, edge_factors_,
                                 scores_.by_arc, reached_.data()),
                       cell_alphas_.data(), probs);
}

template class Lockstep<SumProduct>;
template class Lockstep<LogSum>;
// For the best path there are only steps back.
template Lockstep<MaxPlus>::Lockstep(const AutomatonScores&, const TermWeights&);
template void Lockstep<MaxPlus>::open(const Group&);
template void Lockstep<MaxPlus>::fill_factors(int64_t, Packed*);
template void Lockstep<MaxPlus>::begin_beta(int64_t, const Packed&);
template void Lockstep<MaxPlus>::reach_by_largest(int64_t, const Packed*);
template void Lockstep<MaxPlus>::copy_beta(Packed*) const;
template void Lockstep<MaxPlus>::backward();

}  // namespace hedgerow
