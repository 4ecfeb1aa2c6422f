// Mixing rates in scaled probability space and single precision for few labels, with a sequence in
// each of eight lanes.
//
// Messages have a largest entry of about 1; entries of possible labels are never below kFloor, so
// that 0 always means impossible. What the floor adds to a sum is lost in rounding as long as the
// sum is at least kReliable; otherwise the sequence is left to log space. Without forbidden arcs
// this never happens.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel.hpp"
#include "simd_float.hpp"
#include "sum_grid.hpp"
#include "trellis/chain.hpp"
#include "trellis/mixing.hpp"
#include "trellis/strands.hpp"

namespace hedgerow {

inline constexpr float kFloor = 0x1p-86f;
inline constexpr double kLogFloor = -59.6;    // slightly above its logarithm
inline constexpr float kReliable = 0x1p-54f;  // 2^32 floors

// exp(arcs - their maximum) and its transpose; computed once per batch.
struct MixingArcs {
  explicit MixingArcs(const ChainScores& scores);

  bool usable;                     // false: some are too far apart
  std::vector<float> to_next;      // (K, K) [label before, label]
  std::vector<float> to_previous;  // (K, K) [label, label before]
};

// What the kernels read and write for a group. T: length of its longest sequence.
struct MixingScratch {
  const float* to_next = nullptr;         // (K, K) exp(arcs - maximum) [label before, label]
  const float* to_previous = nullptr;     // (K, K) its transpose
  bool pairs = false;                     // whether the curvature of pairs is wanted
  int64_t longest = 0;                    // T
  PackedFloats lengths;                   // of each lane, 0 for lanes without a sequence
  std::vector<Packed> nodes[2];           // (T, K) of the first four lanes, and of the others
  std::vector<PackedFloats> factors;      // (T, K) exp(nodes - maximum)
  std::vector<PackedFloats> afters;       // (T, K) messages of the labels from t on
  std::vector<PackedFloats> node_gammas;  // (T,), first the messages to_next
  std::vector<PackedFloats> edge_gammas;  // (T,)
  PackedFloats smallest;                  // of the sums that may not be less than kReliable
  Packed curvature[2][kMostLaneLabels * kMostLaneLabels];  // (K, K) of lanes as in nodes
};

// Scratch memory of one thread.
class LaneMixing {
 public:
  LaneMixing(const ChainScores& scores, const MixingArcs& arcs, const MixingBounds& out);

  // Computes what is wanted for a group, and writes the gammas.
  void run(const StrandGroup<kFloats>& group, Stop& stop);

  // Whether the sequence in a lane of the last group needs log space; its other results are then
  // meaningless.
  bool refused(int lane) const { return !(scratch_.smallest.values[lane] >= kReliable); }
  // Adds `weight` times the curvature of the pairs. sums: (K, K)
  void add_pair_curvature(int lane, double weight, const SumTable& sums) const;

 private:
  void load(const StrandGroup<kFloats>& group);

  const ChainScores& scores_;
  MixingBounds out_;
  MixingScratch scratch_;
};

}  // namespace hedgerow
