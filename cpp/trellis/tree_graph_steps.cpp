#include "trellis/tree_graph_steps.hpp"

#include <algorithm>

#include "trellis/lockstep_loops.hpp"
#include "trellis/strands.hpp"

namespace hedgerow {

template <class Semiring>
GraphSteps<Semiring>::GraphSteps(const GraphStates& states, const std::vector<double>& weights,
                                 const SumGrid& grid)
    : automaton_(*states.automaton()),
      grid_(grid),
      n_states_(states.n_states()),
      stride_(states.stride()),
      beliefs_(stride_),
      reach_(stride_, Packed(broadcast(Semiring::kZero))),
      outsides_(std::max(automaton_.n_cells(), stride_)),
      messages_(outsides_.size()),
      unused_(stride_) {
  const auto weigh = [&](const TermTable& table, std::vector<double>& by_term) {
    for (const int32_t arc : table.arcs) by_term.push_back(weights[arc]);
  };
  weigh(automaton_.to_states, to_states_);
  weigh(automaton_.to_cells, to_cells_);
}

template <class Semiring>
void GraphSteps<Semiring>::load_rows(const double* rows, int64_t n_nodes, Packed* out) const {
  LaneRows<const double> lanes;
  for (int64_t l = 0; l < kLanes; ++l)
    lanes.rows[l] = rows + std::min(l, n_nodes - 1) * stride_, lanes.counts[l] = stride_;
  rows_to_lanes(lanes, out, stride_);
}

template <class Semiring>
void GraphSteps<Semiring>::clear_lanes(int64_t n_nodes, Packed* numbers) const {
  for (int q = 0; q < n_states_; ++q)
    std::fill(numbers[q].values + n_nodes, numbers[q].values + kLanes, Semiring::kZero);
}

template <class Semiring>
void GraphSteps<Semiring>::store_rows(const Packed* in, int64_t n_nodes, double* rows) {
  LaneRows<double> lanes;
  for (int64_t l = 0; l < kLanes; ++l)
    lanes.rows[l] = l < n_nodes ? rows + l * stride_ : unused_.data(), lanes.counts[l] = stride_;
  lanes_to_rows(in, lanes);
}

template <class Semiring>
void GraphSteps<Semiring>::fill_messages(const double* beliefs, int64_t n, double* messages) {
  const Step step = step_over(automaton_.to_cells, to_cells_, {}, false, beliefs_.data());
  for (int64_t first = 0; first < n; first += kLanes) {
    load_rows(beliefs + first * stride_, n - first, beliefs_.data());
    fill_rows<Semiring>(step, messages_.data());
    spread_cells<Semiring>(automaton_, messages_.data());
    std::fill(messages_.begin() + n_states_, messages_.begin() + stride_,
              Packed(broadcast(Semiring::kZero)));
    store_rows(messages_.data(), n - first, messages + first * stride_);
  }
}

template <class Semiring>
void GraphSteps<Semiring>::fill_reach(const double* outsides, int64_t n, double* reach) {
  const Step step = step_over(automaton_.to_states, to_states_, {}, false, outsides_.data());
  for (int64_t first = 0; first < n; first += kLanes) {
    load_rows(outsides + first * stride_, n - first, outsides_.data());
    sum_cells<Semiring>(automaton_, outsides_.data());
    fill_rows<Semiring>(step, reach_.data());
    store_rows(reach_.data(), n - first, reach + first * stride_);
  }
}

template <class Semiring>
void GraphSteps<Semiring>::fill_reach_and_sums(const double* outsides, const double* shares,
                                               int64_t n, double* reach)
  requires Semiring::kSums
{
  const Step step = step_over(automaton_.to_states, to_states_, {}, false, outsides_.data());
  for (int64_t first = 0; first < n; first += kLanes) {
    load_rows(outsides + first * stride_, n - first, outsides_.data());
    load_rows(shares + first * stride_, n - first, beliefs_.data());
    if (n - first < kLanes) clear_lanes(n - first, beliefs_.data());
    sum_cells<Semiring>(automaton_, outsides_.data());
    fill_rows_and_sums<Semiring>(step, reach_.data(),
                                 RoundedTermSums{beliefs_.data(), grid_, sums_.data()});
    store_rows(reach_.data(), n - first, reach + first * stride_);
  }
}

template <class Semiring>
void GraphSteps<Semiring>::open_sums() {
  sums_.assign(to_states_.size(), Packed(broadcast(0.0)));
}

template <class Semiring>
void GraphSteps<Semiring>::add_sums_to(double* arc_sums) const {
  for (size_t e = 0; e < sums_.size(); ++e)
    arc_sums[automaton_.to_states.arcs[e]] += sum_lanes(sums_[e]);
}

template class GraphSteps<SumProduct>;
// For the best labelling there are only messages up.
template GraphSteps<MaxPlus>::GraphSteps(const GraphStates&, const std::vector<double>&,
                                         const SumGrid&);
template void GraphSteps<MaxPlus>::fill_messages(const double*, int64_t, double*);

}  // namespace hedgerow
