#include "trellis/tree_graph_lanes.hpp"

#include <algorithm>
#include <cmath>

#include "trellis/tree_graph_lane_loops.hpp"
#include "trellis/tree_graph_order.hpp"
#include "trellis/tree_graph_rows.hpp"

namespace hedgerow {
namespace {

// The kernels for one number of labels.
struct GraphLaneKernels {
  void (*up)(GraphLaneScratch&, Stop&);
  void (*down)(GraphLaneScratch&, Stop&);
  void (*bend)(GraphLaneScratch&, Stop&);
};
const GraphLaneKernels& graph_lane_kernels(int n_labels) {
  return kernels_for(n_labels, [](auto n) {
    return GraphLaneKernels{wide_clone<graph_lanes_up<n()>>(), wide_clone<graph_lanes_down<n()>>(),
                            wide_clone<graph_lanes_bend<n()>>()};
  });
}

// Rates become gammas, see tree_graph_mixing.hpp.
HEDGEROW_INLINE void graph_lanes_gammas(GraphLaneScratch& scratch, Stop& stop) {
  const Lanes zero = broadcast(0.0), one = broadcast(1.0), two = broadcast(2.0);
  Packed *betas = scratch.betas.data(), *epsilons = scratch.epsilons.data();
  std::fill_n(betas, scratch.longest + 1, Packed(zero));
  std::fill_n(epsilons, scratch.longest + 1, Packed(zero));
  Lanes beta_below = zero, epsilon_below = zero;  // of the children of node i
  for (int64_t i = scratch.longest - 1; i >= 0; --i) {
    if (i % kCheckEvery == 0) stop.check();
    const int32_t* above = scratch.above.data() + i * kLanes;
    const Lanes linked = links_of(scratch, above), rate = scratch.down[i];
    const int64_t before = i > 0 ? i - 1 : 0;
    const Lanes next_beta = betas[before], next_epsilon = epsilons[before];
    const Lanes beta = gather_lanes<1>(betas, above, 0) + rate * (one + beta_below);
    const Lanes epsilon =
        gather_lanes<1>(epsilons, above, 0) + where_positive(linked, one + rate * epsilon_below);
    scatter_lanes<1>(beta, above, 0, betas);
    scatter_lanes<1>(epsilon, above, 0, epsilons);
    const Lanes follows = follows_parent(above, i, linked);
    beta_below = if_positive(follows, beta, next_beta);
    epsilon_below = if_positive(follows, epsilon, next_epsilon);
  }
  for (int64_t i = 0; i < scratch.longest; ++i) {
    if (i % kCheckEvery == 0) stop.check();
    const int32_t* above = scratch.above.data() + i * kLanes;
    const Lanes linked = links_of(scratch, above), down = scratch.down[i], up = scratch.up[i];
    const Lanes beta = betas[i], epsilon = epsilons[i];
    const Lanes others = gather_lanes<1>(betas, above, 0) - down * (one + beta);
    const Lanes edges = gather_lanes<1>(epsilons, above, 0) - (one + down * epsilon);
    const Lanes around = beta + where_positive(linked, up * (one + others));
    betas[i] = around;
    epsilons[i] = epsilon + where_positive(linked, one + up * edges);
    store_as_floats(scratch.node_gammas.data() + i * kLanes, two * (one + around));
    store_as_floats(scratch.edge_gammas.data() + i * kLanes,
                    where_positive(linked, two * (one + edges + epsilon)));
  }
}

}  // namespace

bool GraphLanes::fit(const GraphScores& scores, const GraphPosteriors& out) {
  return scores.automaton == nullptr && scores.edges == nullptr && out.pairs == nullptr &&
         out.patterns == nullptr && labels_fit_lanes(scores.n_labels);
}

GraphLanes::GraphLanes(const GraphScores& scores, const GraphStates& states, const int32_t* labels,
                       const GraphPosteriors& out)
    : scores_(scores), labels_(labels), out_(out), shift_(states.shift()) {
  for (int j = 0; j < scores.n_labels; ++j) {
    const double* row = states.matrix() + static_cast<int64_t>(j) * states.label_stride();
    weights_.insert(weights_.end(), row, row + scores.n_labels);
  }
  scratch_.weights = weights_.data();
  scratch_.marginals = out.marginals != nullptr;
  scratch_.arc_sums = out.arc_sums != nullptr;
  scratch_.mixing = out.mixing != nullptr;
  scratch_.curvature = out.mixing != nullptr && out.mixing->pair_curvature != nullptr;
}

void GraphLanes::run(const StrandGroup<kLanes>& group, Stop& stop) {
  const GraphLaneKernels& kernels = graph_lane_kernels(scores_.n_labels);
  load(group);
  kernels.up(scratch_, stop);
  if (!out_.need_down()) return;
  kernels.down(scratch_, stop);
  if (out_.marginals) write_marginals();
  if (!scratch_.mixing) return;
  wide_clone<graph_lanes_gammas>()(scratch_, stop);
  write_gammas();
  if (scratch_.curvature) kernels.bend(scratch_, stop);
}

void GraphLanes::load(const StrandGroup<kLanes>& group) {
  group_ = group;
  const int64_t n_labels = scores_.n_labels, longest = group.longest;
  scratch_.longest = longest;
  scratch_.above.assign(longest * kLanes, static_cast<int32_t>(longest));
  for (auto* rows : {&scratch_.beliefs, &scratch_.messages, &scratch_.earlier, &scratch_.later})
    ensure_size(*rows, (longest + 1) * n_labels);
  if (scratch_.curvature) ensure_size(scratch_.outsides, longest * n_labels);
  if (scratch_.mixing) {
    for (auto* rows : {&scratch_.down, &scratch_.up, &scratch_.betas, &scratch_.epsilons})
      ensure_size(*rows, longest + 1);
    for (auto* gammas : {&scratch_.node_gammas, &scratch_.edge_gammas})
      gammas->resize(longest * kLanes);
  }
  for (int k = 0; k < n_labels; ++k)
    scratch_.beliefs[longest * n_labels + k] = Packed(broadcast(1.0));
  for (int l = 0; l < kLanes; ++l) {
    scratch_.lengths.values[l] = static_cast<double>(group.lengths[l]);
    order_nodes(l);
    const double* nodes = scores_.nodes + group.begins[l] * n_labels;
    Packed* out = scratch_.beliefs.data();
    for (int64_t i = 0; i < group.lengths[l]; ++i) {
      const double* row = nodes + places_[l][i] * n_labels;
      for (int64_t k = 0; k < n_labels; ++k) (out++)->values[l] = row[k];
    }
    for (; out < scratch_.beliefs.data() + longest * n_labels; ++out) out->values[l] = 0.0;
  }
}

// Numbers the nodes of a lane: the ancestors of each position that have no number yet, from the
// highest down, and then the position itself.
void GraphLanes::order_nodes(int lane) {
  const int64_t length = group_.lengths[lane], sequence = group_.sequences[lane];
  const int32_t* parents = scores_.parents + group_.begins[lane];
  ranks_.assign(length, -1), waiting_.resize(length), places_[lane].resize(length);
  int32_t *ranks = ranks_.data(), *waiting = waiting_.data(), *places = places_[lane].data();
  int32_t* above = scratch_.above.data() + lane;
  int32_t n_placed = 0;
  int64_t n_edges = 0, n_waiting = 0;
  const auto place = [&](int32_t at) {
    const int32_t parent = parents[at];
    ranks[at] = n_placed, places[n_placed] = at;
    if (parent >= 0) above[int64_t{n_placed} * kLanes] = ranks[parent], ++n_edges;
    ++n_placed;
  };
  for (int64_t t = 0; t < length; ++t) {
    for (int64_t at = t; ranks[at] < 0; at = parents[at]) {
      const int64_t parent = parents[at];
      check_parent(parent, at, length, sequence);
      if (parent < 0 || ranks[parent] >= 0) {
        place(static_cast<int32_t>(at));
        break;
      }
      if (n_waiting == length) throw_circle();
      waiting[n_waiting++] = static_cast<int32_t>(at);
    }
    while (n_waiting > 0) place(waiting[--n_waiting]);
  }
  n_edges_[lane] = n_edges;
}

void GraphLanes::write_marginals() const {
  const int64_t n_labels = scores_.n_labels;
  for (int l = 0; l < group_.n_strands; ++l) {
    double* out = out_.marginals + group_.begins[l] * n_labels;
    const Packed* in = scratch_.earlier.data();
    for (int64_t i = 0; i < group_.lengths[l]; ++i) {
      double* row = out + places_[l][i] * n_labels;
      for (int64_t k = 0; k < n_labels; ++k) row[k] = (in++)->values[l];
    }
  }
}

void GraphLanes::write_gammas() const {
  for (int l = 0; l < group_.n_strands; ++l)
    for (int64_t i = 0; i < group_.lengths[l]; ++i) {
      const int64_t position = group_.begins[l] + places_[l][i];
      out_.mixing->node_gammas[position] = scratch_.node_gammas[i * kLanes + l];
      if (out_.mixing->edge_gammas)
        out_.mixing->edge_gammas[position] = scratch_.edge_gammas[i * kLanes + l];
    }
}

// The score of the labels.
ExactSum GraphLanes::path_score(int lane) const {
  const int64_t n_labels = scores_.n_labels, begin = group_.begins[lane];
  ExactSum sum;
  for (int64_t t = begin; t < begin + group_.lengths[lane]; ++t) {
    sum.add(scores_.nodes[t * n_labels + labels_[t]]);
    if (scores_.parents[t] >= 0)
      sum.add(scores_.arcs[labels_[begin + scores_.parents[t]] * n_labels + labels_[t]]);
  }
  return sum;
}

LaneTotals GraphLanes::totals(int lane) const {
  LaneTotals totals;
  totals.refused = !(scratch_.smallest.values[lane] >= kLeastBelief);
  totals.shifts = scratch_.shifts.at(lane);
  const auto times = static_cast<double>(n_edges_[lane]);
  totals.shifts.add(times * shift_);
  totals.shifts.add(std::fma(times, shift_, -(times * shift_)));  // what the product lost
  if (out_.log_likelihoods && labels_ && !totals.refused) totals.paths = path_score(lane);
  totals.log_scale.add(std::log(scratch_.roots.values[lane]));
  totals.log_scale.add(scratch_.exponents.values[lane] * 0.6931471805599453);
  return totals;
}

void GraphLanes::add_tables(int lane, const SumTable& arc_sums, const SumTable& curvature) const {
  const int64_t sequence = group_.sequences[lane];
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (arc_sums)
      arc_sums.add(i, out_.weight(sequence) * (weights_[i] * scratch_.sums[i].values[lane]));
    if (curvature) curvature.add(i, out_.mixing->weight(sequence) * scratch_.bends[i].values[lane]);
  }
}

}  // namespace hedgerow
