#include "trellis/tree_graph_lanes.hpp"

#include <algorithm>
#include <cmath>

#include "trellis/tree_graph_lane_loops.hpp"
#include "trellis/tree_graph_order.hpp"
#include "trellis/tree_graph_rows.hpp"

namespace hedgerow {
namespace {

// The kernels for one number of labels.
template <class Kind>
struct GraphLaneKernels {
  void (*load)(const double*, const int32_t*, int64_t, int, GraphLaneScratch<Kind>&);
  void (*up)(GraphLaneScratch<Kind>&, Stop&);
  void (*down)(GraphLaneScratch<Kind>&, Stop&);
  void (*bend)(GraphLaneScratch<Kind>&, Stop&);
};
template <class Kind>
const GraphLaneKernels<Kind>& graph_lane_kernels(int n_labels) {
  return kernels_for(n_labels, [](auto n) {
    return GraphLaneKernels<Kind>{
        wide_clone_v3<load_lane_nodes<Kind, n()>>(), wide_clone_v3<graph_lanes_up<Kind, n()>>(),
        wide_clone_v3<graph_lanes_down<Kind, n()>>(), wide_clone_v3<graph_lanes_bend<Kind, n()>>()};
  });
}

}  // namespace

template <class Kind>
bool GraphLanes<Kind>::fit(const GraphScores& scores, const GraphStates& states,
                           const GraphPosteriors& out) {
  if (scores.automaton || scores.edges || out.pairs || out.patterns || !states.usable() ||
      !labels_fit_lanes(scores.n_labels))
    return false;
  if (!Kind::kSingle) return true;
  const auto weighs_enough = [](double w) { return w == 0.0 || w >= Kind::kLeast; };
  return out.mixing_alone() &&
         std::all_of(states.arc_weights().begin(), states.arc_weights().end(), weighs_enough);
}

template <class Kind>
GraphLanes<Kind>::GraphLanes(const GraphScores& scores, const GraphStates& states,
                             const int32_t* labels, const GraphPosteriors& out)
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

template <class Kind>
void GraphLanes<Kind>::run(const Group& group, Stop& stop) {
  const GraphLaneKernels<Kind>& kernels = graph_lane_kernels<Kind>(scores_.n_labels);
  load(group);
  kernels.up(scratch_, stop);
  if (!out_.need_down()) return;
  kernels.down(scratch_, stop);
  if (out_.marginals) write_marginals();
  if (!scratch_.mixing) return;
  wide_clone_v3<graph_lanes_gammas<Kind>>()(scratch_, stop);
  write_gammas();
  if (scratch_.curvature) kernels.bend(scratch_, stop);
}

template <class Kind>
void GraphLanes<Kind>::load(const Group& group) {
  group_ = group;
  const int64_t n_labels = scores_.n_labels, longest = group.longest;
  scratch_.longest = longest;
  scratch_.above.assign(longest * Kind::kWidth, static_cast<int32_t>(longest));
  for (auto* rows : {&scratch_.beliefs, &scratch_.messages, &scratch_.earlier, &scratch_.later})
    ensure_size(*rows, (longest + 1) * n_labels);
  if (scratch_.curvature) ensure_size(scratch_.outsides, longest * n_labels);
  if (scratch_.mixing) {
    for (auto* rows : {&scratch_.down, &scratch_.up, &scratch_.betas, &scratch_.epsilons})
      ensure_size(*rows, longest + 1);
    for (auto* gammas : {&scratch_.node_gammas, &scratch_.edge_gammas})
      gammas->resize(longest * Kind::kWidth);
  }
  for (int k = 0; k < n_labels; ++k)
    scratch_.beliefs[longest * n_labels + k] = broadcast(typename Kind::Number(1));
  for (int l = 0; l < Kind::kWidth; ++l) {
    scratch_.lengths.values[l] = static_cast<Kind::Number>(group.lengths[l]);
    order_nodes(l);
    graph_lane_kernels<Kind>(n_labels).load(scores_.nodes + group.begins[l] * n_labels,
                                            places_[l].data(), group.lengths[l], l, scratch_);
  }
}

// Numbers the nodes of a lane: the ancestors of each position that have no number yet, from the
// highest down, and then the position itself.
template <class Kind>
void GraphLanes<Kind>::order_nodes(int lane) {
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
    if (parent >= 0) above[int64_t{n_placed} * Kind::kWidth] = ranks[parent], ++n_edges;
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

template <class Kind>
void GraphLanes<Kind>::write_marginals() const {
  const int64_t n_labels = scores_.n_labels;
  for (int l = 0; l < group_.n_strands; ++l) {
    double* out = out_.marginals + group_.begins[l] * n_labels;
    const auto* in = scratch_.earlier.data();
    for (int64_t i = 0; i < group_.lengths[l]; ++i) {
      double* row = out + places_[l][i] * n_labels;
      for (int64_t k = 0; k < n_labels; ++k) row[k] = (in++)->values[l];
    }
  }
}

template <class Kind>
void GraphLanes<Kind>::write_gammas() const {
  for (int l = 0; l < group_.n_strands; ++l)
    for (int64_t i = 0; i < group_.lengths[l]; ++i) {
      const int64_t position = group_.begins[l] + places_[l][i];
      out_.mixing->node_gammas[position] = scratch_.node_gammas[i * Kind::kWidth + l];
      if (out_.mixing->edge_gammas)
        out_.mixing->edge_gammas[position] = scratch_.edge_gammas[i * Kind::kWidth + l];
    }
}

// The score of the labels.
template <class Kind>
ExactSum GraphLanes<Kind>::path_score(int lane) const {
  const int64_t n_labels = scores_.n_labels, begin = group_.begins[lane];
  ExactSum sum;
  for (int64_t t = begin; t < begin + group_.lengths[lane]; ++t) {
    sum.add(scores_.nodes[t * n_labels + labels_[t]]);
    if (scores_.parents[t] >= 0)
      sum.add(scores_.arcs[labels_[begin + scores_.parents[t]] * n_labels + labels_[t]]);
  }
  return sum;
}

template <class Kind>
LaneTotals GraphLanes<Kind>::totals(int lane) const {
  LaneTotals totals;
  totals.refused = refused(lane);
  totals.shifts = scratch_.shifts.at(lane);
  const auto times = static_cast<double>(n_edges_[lane]);
  totals.shifts.add(times * shift_);
  totals.shifts.add(std::fma(times, shift_, -(times * shift_)));  // what the product lost
  if (out_.log_likelihoods && labels_ && !totals.refused) totals.paths = path_score(lane);
  totals.log_scale.add(std::log(scratch_.roots.values[lane]));
  totals.log_scale.add(scratch_.exponents.values[lane] * 0.6931471805599453);
  return totals;
}

template <class Kind>
void GraphLanes<Kind>::add_tables(int lane, const SumTable& arc_sums,
                                  const SumTable& curvature) const {
  const int64_t sequence = group_.sequences[lane];
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (arc_sums)
      arc_sums.add(i, out_.weight(sequence) * (weights_[i] * scratch_.sums[i].values[lane]));
    if (curvature) curvature.add(i, out_.mixing->weight(sequence) * scratch_.bends[i][lane]);
  }
}

template class GraphLanes<DoubleLanes>;
template class GraphLanes<FloatLanes>;

}  // namespace hedgerow
