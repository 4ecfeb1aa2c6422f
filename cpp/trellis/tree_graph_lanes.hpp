// Posteriors of tree-shaped graphs with few labels: a sequence in each lane, in double precision,
// or in single precision if only mixing rates are wanted, as for chains.
//
// Nodes are numbered so that parents come before their children, in each lane by its own tree; the
// messages are those of tree_graph_pass.hpp. On the way up, every child multiplies the belief of
// its parent by its message, and keeps the belief from before: the product over earlier siblings.
// On the way down, every child likewise multiplies a product over later siblings, so that
//   outside_c = (factors and messages of earlier siblings) (reach and messages of later ones),
// two products per child and no division. Rows are scaled by powers of two, which is exact. Every
// number that is kept is 0 or at least kLeast, or the lane is refused.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"
#include "simd_float.hpp"
#include "sum_grid.hpp"
#include "trellis/lane_driver.hpp"
#include "trellis/strands.hpp"
#include "trellis/tree_graph.hpp"
#include "trellis/tree_graph_rows.hpp"
#include "trellis/tree_graph_states.hpp"

namespace hedgerow {

// Four lanes of doubles, for all results.
struct DoubleLanes {
  using Number = double;
  using Vector = Lanes;
  using Stored = Packed;
  static constexpr int kWidth = kLanes;
  static constexpr bool kSingle = false;
  static constexpr double kLeast = kLeastBelief;

  static HEDGEROW_INLINE Vector load_gammas(const float* p) { return load_from_floats(p); }
  static HEDGEROW_INLINE void store_gammas(float* p, Vector a) { store_as_floats(p, a); }
  static HEDGEROW_INLINE void add_to(double* sums, Vector a) { store(sums, load(sums) + a); }
};

// Eight lanes of floats, for mixing rates. The product of two numbers of at least kLeast is a
// normal number.
struct FloatLanes {
  using Number = float;
  using Vector = Floats;
  using Stored = PackedFloats;
  static constexpr int kWidth = kFloats;
  static constexpr bool kSingle = true;
  static constexpr float kLeast = 0x1p-60f;
  static constexpr float kLogLeast = -41.5f;  // slightly above its logarithm

  static HEDGEROW_INLINE Vector load_gammas(const float* p) { return load(p); }
  static HEDGEROW_INLINE void store_gammas(float* p, Vector a) { store(p, a); }
  static HEDGEROW_INLINE void add_to(double* sums, Vector a) {
    const PackedFloats row = a;
    for (int l = 0; l < kWidth; l += kLanes)
      store(sums + l, load(sums + l) + load_from_floats(row.values + l));
  }
};

// What the kernels read and write for a group. T: length of its longest sequence; Kind: of lanes
template <class Kind>
struct GraphLaneScratch {
  using Stored = Kind::Stored;
  static constexpr int kMostPairs = kMostLaneLabels * kMostLaneLabels;

  const Kind::Number* weights = nullptr;  // (K, K) of arcs [label of the parent, label]
  int64_t longest = 0;                    // T
  Stored lengths;                         // of each lane, 0 for lanes without a sequence
  bool marginals = false, arc_sums = false, mixing = false, curvature = false;  // what is wanted
  std::vector<int32_t> above;    // (T, lanes) number of the parent; T at roots and beyond the end
  std::vector<Stored> beliefs;   // (T+1, K) nodes, which the way up turns into beliefs
  std::vector<Stored> messages;  // (T, K)
  std::vector<Stored> earlier;   // (T, K) products over earlier siblings, in the end marginals
  std::vector<Stored> later;     // (T+1, K) products over later children
  std::vector<Stored> outsides;  // (T, K) over norms, if the curvature is wanted
  std::vector<Stored> down, up;  // (T,) rates
  std::vector<float> node_gammas, edge_gammas;  // (T, lanes)
  std::vector<Stored> betas, epsilons;          // (T+1,) see tree_graph_mixing.hpp
  Stored smallest;                              // of all numbers that must be at least kLeast
  LaneSums shifts;                              // of the maxima of the nodes
  Packed exponents;                             // of the powers of two that were divided out
  Packed roots;                                 // what is left of the product over the roots
  Packed sums[kMostPairs];                      // (K, K) of outer products over the edges
  double bends[kMostPairs][Kind::kWidth];       // (K, K) curvature of pairs
};

// Scratch memory of one thread.
template <class Kind>
class GraphLanes {
 public:
  using Group = StrandGroup<Kind::kWidth>;

  // Whether lanes can compute what is wanted: this needs first order, the same arcs everywhere, and
  // few labels; in single precision, also that only mixing rates are wanted, and that arcs are not
  // too far apart. states: those of probabilities
  static bool fit(const GraphScores& scores, const GraphStates& states, const GraphPosteriors& out);

  // states: those of probabilities, which must be usable
  GraphLanes(const GraphScores& scores, const GraphStates& states, const int32_t* labels,
             const GraphPosteriors& out);

  // Computes the results of a group that are wanted, and writes all but the totals and sums. Throws
  // std::invalid_argument if parents do not form forests.
  void run(const Group& group, Stop& stop);

  // Results of a lane of the last group. If it was refused, everything else is meaningless.
  bool refused(int lane) const { return !(scratch_.smallest.values[lane] >= Kind::kLeast); }
  LaneTotals totals(int lane) const;
  // Adds the expected arcs, and the curvature of pairs, times the sequence's weight, to tables (K,
  // K), if they are wanted.
  void add_tables(int lane, const SumTable& arc_sums, const SumTable& curvature) const;

 private:
  void load(const Group& group);
  void order_nodes(int lane);
  void write_marginals() const;
  void write_gammas() const;
  ExactSum path_score(int lane) const;

  const GraphScores& scores_;
  const int32_t* labels_;
  const GraphPosteriors& out_;
  double shift_;                                // of the scores of all arcs
  std::vector<typename Kind::Number> weights_;  // (K, K)
  Group group_{};
  std::vector<int32_t> places_[Kind::kWidth];  // (T,) where each node is in its sequence
  int64_t n_edges_[Kind::kWidth] = {};
  std::vector<int32_t> ranks_, waiting_;
  GraphLaneScratch<Kind> scratch_;
};

}  // namespace hedgerow
