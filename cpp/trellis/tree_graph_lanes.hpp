// Posteriors of tree-shaped graphs with few labels: a sequence in each of four lanes.
//
// Nodes are numbered so that parents come before their children, in each lane by its own tree; the
// messages are those of tree_graph_pass.hpp. On the way up every child multiplies the belief of its
// parent by its message, and keeps what it was before: the product over the siblings that came
// earlier. On the way down in turn every child multiplies what the others have left, so that
//   outside_c = (factors and messages of earlier siblings) (reach and messages of later ones),
// two products per child and no division. Rows are scaled by powers of two, which is exact. Every
// number that is kept is 0 or at least kLeastBelief, or the lane is refused.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"
#include "sum_grid.hpp"
#include "trellis/lane_driver.hpp"
#include "trellis/strands.hpp"
#include "trellis/tree_graph.hpp"
#include "trellis/tree_graph_states.hpp"

namespace hedgerow {

// What the kernels read and write of a group. T: length of its longest sequence.
struct GraphLaneScratch {
  const double* weights = nullptr;  // (K, K) of arcs [label of the parent, label]
  int64_t longest = 0;              // T
  Packed lengths;                   // of each lane, 0 for lanes without a sequence
  bool marginals = false, arc_sums = false, mixing = false, curvature = false;  // what is wanted
  std::vector<int32_t> above;    // (T, lanes) number of the parent; T at roots and beyond the end
  std::vector<Packed> beliefs;   // (T+1, K) nodes, which the way up turns into beliefs
  std::vector<Packed> messages;  // (T, K)
  std::vector<Packed> earlier;   // (T, K) products over earlier siblings, in the end marginals
  std::vector<Packed> later;     // (T+1, K) products over later children
  std::vector<Packed> outsides;  // (T, K) over norms, if the curvature is wanted
  std::vector<Packed> down, up;  // (T,) rates
  std::vector<float> node_gammas, edge_gammas;      // (T, lanes)
  std::vector<Packed> betas, epsilons;              // (T+1,) see tree_graph_mixing.hpp
  Packed smallest;                                  // of what may not be less than kLeastBelief
  LaneSums shifts;                                  // of the maxima of the nodes
  Packed exponents;                                 // of the powers of two that were divided out
  Packed roots;                                     // what is left of the product over the roots
  Packed sums[kMostLaneLabels * kMostLaneLabels];   // (K, K) of outer products over the edges
  Packed bends[kMostLaneLabels * kMostLaneLabels];  // (K, K) curvature of pairs
};

// Scratch memory of one thread.
class GraphLanes {
 public:
  // Whether lanes can give what is wanted: first order, the same arcs everywhere, few labels.
  static bool fit(const GraphScores& scores, const GraphPosteriors& out);

  // states: those of probabilities, which must be usable
  GraphLanes(const GraphScores& scores, const GraphStates& states, const int32_t* labels,
             const GraphPosteriors& out);

  // Computes what is wanted of a group, and writes all of it but the totals and sums. Throws
  // std::invalid_argument if parents are not those of forests.
  void run(const StrandGroup<kLanes>& group, Stop& stop);

  // Of a lane of the last group. Where it was refused everything else is meaningless.
  LaneTotals totals(int lane) const;
  // Adds the expected arcs, and the curvature of pairs, times the sequence's weight; either may not
  // be wanted. (K, K)
  void add_tables(int lane, const SumTable& arc_sums, const SumTable& curvature) const;

 private:
  void load(const StrandGroup<kLanes>& group);
  void order_nodes(int lane);
  void write_marginals() const;
  void write_gammas() const;
  ExactSum path_score(int lane) const;

  const GraphScores& scores_;
  const int32_t* labels_;
  const GraphPosteriors& out_;
  double shift_;                 // of the scores of all arcs
  std::vector<double> weights_;  // (K, K)
  StrandGroup<kLanes> group_{};
  std::vector<int32_t> places_[kLanes];  // (T,) where each node is in its sequence
  int64_t n_edges_[kLanes] = {};
  std::vector<int32_t> ranks_, waiting_;
  GraphLaneScratch scratch_;
};

}  // namespace hedgerow
