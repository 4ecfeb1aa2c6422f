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
#include "trellis/scaled.hpp"
#include "trellis/strands.hpp"
#include "trellis/sums.hpp"

namespace hedgerow {

// A compensated sum in each lane, as ExactSum.
struct LaneSums {
  Packed sums = broadcast(0.0), lost = broadcast(0.0);

  HEDGEROW_INLINE void add(Lanes x) {
    const Lanes before = sums, total = before + x, added = total - before;
    lost += (before - (total - added)) + (x - added);
    sums = total;
  }
  ExactSum at(int lane) const { return ExactSum(sums.values[lane], lost.values[lane]); }
};

// exp(arcs - shift) without padding; computed once per batch.
struct LaneArcs {
  explicit LaneArcs(const ScaledArcs& arcs);

  double shift;                 // the largest arc
  bool holes;                   // some arc is -inf
  std::vector<double> factors;  // (K, K) [label before, label]
};

// Log Z and the log-likelihood of a sequence or a piece of one: those of pieces add up.
struct LaneTotals {
  bool refused = false;  // log space is needed, and all else is meaningless
  ExactSum shifts;       // what was subtracted from the score of every path
  ExactSum paths;        // scores of the labels
  ExactSum log_scale;    // log of all that was divided out, and of what is left

  void add(const LaneTotals& other) {
    refused = refused || other.refused;
    shifts.add(other.shifts);
    paths.add(other.paths);
    log_scale.add(other.log_scale);
  }
  double log_z() const { return shifts.value() + log_scale.value(); }
  double log_likelihood() const {
    ExactSum score = paths;
    score.add(shifts, -1.0);
    return score.value() - log_scale.value();
  }
};

// What the kernels read and write of a group. T: length of its longest sequence.
struct LaneScratch {
  const double* arcs = nullptr;    // (K, K) exp(arcs - shift) [label before, label]
  bool holes = false;              // some of them are 0
  int64_t longest = 0;             // T
  Packed lengths;                  // of each lane, 0 for lanes without a sequence
  bool pieces = false;             // whether a position may come before the first one
  Packed starts[kMostLaneLabels];  // (K,) alpha before the first position, 0 where there is none
  Packed ends[kMostLaneLabels];    // (K,) beta at the last position
  std::vector<Packed> factors;     // (T, K) nodes, which forward turns into exp(nodes - maximum)
  std::vector<Packed> alphas;      // (T, K), which backward turns into marginals; empty: not wanted
  Packed smallest;                 // of what may not be less than kSmallest
  LaneSums shifts;                 // of the maxima of the nodes
  Packed exponents;                // sum of those of the powers of two that were divided out
  Packed last_sum;                 // sum of alpha at the last position
  Packed pairs[kMostLaneLabels * kMostLaneLabels];  // (K, K) sums of alpha_{t-1} / n_{t-1} and v_t
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
  // Where a sequence begins.
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

// Scratch memory of one thread.
class LaneChain {
 public:
  LaneChain(const ChainScores& scores, const LaneArcs& arcs, const ChainPosteriors& out);

  // Computes what is wanted of a group, and writes marginals and pairs. labels: (N,), null if no
  // log-likelihoods are wanted
  void run(const StrandGroup<kLanes>& group, const int32_t* labels, Stop& stop);

  // Of a lane of the last group.
  LaneTotals totals(int lane) const;
  // Adds `weight` times the sum of the pair posteriors. pair_sums: (K, K)
  void add_pair_sums(int lane, double weight, double* pair_sums) const;

 private:
  void load();
  void add_paths(const int32_t* labels);

  const ChainScores& scores_;
  const LaneArcs& arcs_;
  const ChainPosteriors& out_;
  PairRows pair_rows_;
  StrandGroup<kLanes> group_{};
  LaneScratch scratch_;
  LaneSums paths_;  // scores of the labels
};

// Fills `numbers` (T, K) with the nodes of a group, 0 past the end of a lane, and `lengths`.
void load_nodes(const ChainScores& scores, const StrandGroup<kLanes>& group,
                std::vector<Packed>& numbers, Packed& lengths);

}  // namespace hedgerow
