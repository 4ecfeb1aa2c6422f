// Forward-backward for few labels if scores of arcs differ from position to position:
// lane_chain.hpp with edges. Mixing rates, see mixing.hpp, are by-products of the two passes.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"
#include "trellis/chain.hpp"
#include "trellis/lane_driver.hpp"
#include "trellis/scaled.hpp"

namespace hedgerow {

// What the kernels read and write for a group in addition. T: length of its longest sequence.
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

class LaneEdges final : public LaneDriver {
 public:
  // arcs: only to know whether some are forbidden
  LaneEdges(const ChainScores& scores, const ScaledArcs& arcs, const ChainPosteriors& out);

  void add_pair_sums(int lane, double weight, const SumTable& pair_sums) const override;
  void add_pair_curvature(int lane, double weight, const SumTable& pair_curvature) const override;

 private:
  void load() override;
  void forward(Stop& stop) override;
  void backward(Stop& stop) override;
  void write_pairs();
  void write_gammas();

  LaneEdgeScratch scratch_;
};

}  // namespace hedgerow
