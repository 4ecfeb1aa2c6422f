// Forward-backward for few labels where arcs score differently from position to position:
// lane_chain.hpp with edges. Mixing rates, see mixing.hpp, are by-products of the two passes.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"
#include "trellis/chain.hpp"
#include "trellis/lane_chain.hpp"
#include "trellis/strands.hpp"

namespace hedgerow {

// What the kernels read and write of a group besides. T: length of its longest sequence.
struct LaneEdgeScratch : LaneScratch {
  bool need_sums = false;
  bool need_mixing = false;
  // (T, K, K) scores of edges, which forward turns into exp(arcs + edges - maximum), and backward
  // into pair posteriors.
  std::vector<Packed> edges;
  std::vector<Packed> node_gammas;  // (T,), first the messages to the next position
  std::vector<Packed> edge_gammas;  // (T,)
  Packed curvature[kMostLaneLabels * kMostLaneLabels];  // (K, K) of pairs
};

// Scratch memory of one thread.
class LaneEdges {
 public:
  // arcs: whether some are forbidden
  LaneEdges(const ChainScores& scores, const ScaledArcs& arcs, const ChainPosteriors& out);

  // Computes what is wanted of a group, and writes all of it but the totals and sums. labels: (N,),
  // null if no log-likelihoods are wanted
  void run(const StrandGroup<kLanes>& group, const int32_t* labels, Stop& stop);

  // Of a lane of the last group.
  LaneTotals totals(int lane) const;
  // Adds `weight` times the sum of the pair posteriors. pair_sums: (K, K)
  void add_pair_sums(int lane, double weight, double* pair_sums) const;
  // Likewise the curvature of pairs. pair_curvature: (K, K)
  void add_pair_curvature(int lane, double weight, double* pair_curvature) const;

 private:
  void load();
  void add_paths(const int32_t* labels);
  void write_pairs();
  void write_gammas();

  const ChainScores& scores_;
  const ChainPosteriors& out_;
  PairRows pair_rows_;
  StrandGroup<kLanes> group_{};
  LaneEdgeScratch scratch_;
  LaneSums paths_;  // scores of the labels
};

}  // namespace hedgerow
