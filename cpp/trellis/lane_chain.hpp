// Forward-backward in scaled probability space for few labels: scaled.hpp with a sequence in each
// of four lanes.
//
// The precision is that of scaled.hpp: full, or the lane is refused. Rows are scaled by powers of
// two, which is exact.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"
#include "trellis/chain.hpp"
#include "trellis/lane_driver.hpp"
#include "trellis/scaled.hpp"
#include "trellis/strands.hpp"

namespace hedgerow {

// exp(arcs - shift) without padding; computed once per batch.
struct LaneArcs {
  explicit LaneArcs(const ScaledArcs& arcs);

  double shift;                 // the largest arc
  bool holes;                   // some arc is -inf
  std::vector<double> factors;  // (K, K) [label before, label]
};

// Where the pair posteriors of each position of a group are written.
class PairLanes {
 public:
  PairLanes(const StrandGroup<kLanes>& group, PairRows& rows) : group_(group), rows_(rows) {}

  bool wanted() const { return rows_.wanted(); }
  // pairs: (K, K), those of positions t - 1 and t
  void write(int64_t t, const Packed* pairs, int n_pairs) const {
    for (int l = 0; l < group_.n_strands; ++l) {
      if (t >= group_.lengths[l] || (t == 0 && group_.starts[l] == nullptr)) continue;
      rows_.open(group_.begins[l]);
      for (int i = 0; i < n_pairs; ++i) rows_.row(t)[i] = pairs[i].values[l];
      rows_.close(t);
    }
  }
  // Closes the first positions of the sequences that begin in this group.
  void close_first() const {
    for (int l = 0; l < group_.n_strands; ++l) {
      if (group_.lengths[l] == 0 || group_.starts[l] != nullptr) continue;
      rows_.open(group_.begins[l]);
      rows_.close_first();
    }
  }

 private:
  const StrandGroup<kLanes>& group_;
  PairRows& rows_;
};

class LaneChain final : public LaneDriver {
 public:
  LaneChain(const ChainScores& scores, const LaneArcs& arcs, const ChainPosteriors& out);

  void add_pair_sums(int lane, double weight, const SumTable& pair_sums) const override;

 private:
  void load() override;
  void forward(Stop& stop) override;
  void backward(Stop& stop) override;
  void add_arc_shifts(int lane, ExactSum& shifts) const override;

  const LaneArcs& arcs_;
  LaneScratch scratch_;
};

}  // namespace hedgerow
