// A sequence in each of four lanes: what kernels do with a group of them, whatever their arcs are.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"
#include "sum_grid.hpp"
#include "trellis/chain.hpp"
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

// Log Z and the log-likelihood of a sequence, or of a piece of one: the totals of pieces can be
// added up.
struct LaneTotals {
  bool refused = false;  // log space is needed, and everything else is meaningless
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

// What the kernels read and write for a group. T: length of its longest sequence.
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
  Packed smallest;                 // of all numbers that must be at least kSmallest
  LaneSums shifts;                 // of the maxima of the nodes
  Packed exponents;                // sum of the exponents of the powers of two divided out
  Packed last_sum;                 // sum of alpha at the last position
  // (K, K) sums of the products of alpha_{t-1} / n_{t-1} and v_t
  Packed pairs[kMostLaneLabels * kMostLaneLabels];
};

// Runs the kernels for a group, and writes the results that are wanted. Scratch memory of one
// thread.
class LaneDriver {
 public:
  virtual ~LaneDriver() = default;

  // Computes the results of a group that are wanted, and writes all but the totals and sums.
  // labels: (N,), null if no log-likelihoods are wanted
  void run(const StrandGroup<kLanes>& group, const int32_t* labels, Stop& stop);

  // The totals of a lane of the last group.
  LaneTotals totals(int lane) const;
  // Adds `weight` times the sum of the pair posteriors. pair_sums: (K, K)
  virtual void add_pair_sums(int lane, double weight, const SumTable& pair_sums) const = 0;
  // Likewise the curvature of pairs, if the kernels compute it. pair_curvature: (K, K)
  virtual void add_pair_curvature(int, double, const SumTable&) const {}

 protected:
  // scratch: that of the kernels, which belongs to the caller
  LaneDriver(const ChainScores& scores, const ChainPosteriors& out, LaneScratch& scratch)
      : scores_(scores), out_(out), pair_rows_(out, scores.n_labels), scratch_(scratch) {}
  LaneDriver(const LaneDriver&) = delete;

  // Loads what the kernels read besides nodes and lengths.
  virtual void load() = 0;
  virtual void forward(Stop& stop) = 0;
  // Also writes all results but the marginals.
  virtual void backward(Stop& stop) = 0;
  // Adds what was subtracted from the scores of the arcs of every path, unless the kernel has
  // already added it.
  virtual void add_arc_shifts(int, ExactSum&) const {}

  int64_t n_pairs() const { return int64_t{scores_.n_labels} * scores_.n_labels; }

  const ChainScores& scores_;
  const ChainPosteriors& out_;
  PairRows pair_rows_;
  StrandGroup<kLanes> group_{};

 private:
  void add_paths(const int32_t* labels);

  LaneScratch& scratch_;
  LaneSums paths_;  // scores of the labels
};

template <class Number>
void ensure_size(std::vector<Number>& numbers, int64_t size) {
  if (std::ssize(numbers) < size) numbers.resize(size);
}

// Fills `numbers` (T, K) with the nodes of a group, 0 past the end of a lane, and `lengths`.
void load_nodes(const ChainScores& scores, const StrandGroup<kLanes>& group,
                std::vector<Packed>& numbers, Packed& lengths);

}  // namespace hedgerow
