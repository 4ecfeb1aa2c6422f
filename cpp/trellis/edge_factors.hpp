// Factors of arcs that differ from position to position, for kernels in scaled probability space:
// exp(arcs + edges[t] - shift[t]).
//
// Computing their exponentials takes most of the time, so those of a sequence are kept for the next
// pass over it, or those of one block of its positions if all of them would take too much memory.
#pragma once

#include <cstdint>
#include <vector>

#include "simd.hpp"
#include "trellis/chain.hpp"

namespace hedgerow {

// Scratch memory of one thread. Not used if the scores have no edges.
class EdgeFactors {
 public:
  explicit EdgeFactors(const ChainScores& scores);

  bool given() const { return scores_.has_edges(); }
  // Begins a sequence. keep: whether there will be more than one pass over it
  void open(int64_t sequence, bool keep);
  // In the first pass, which goes through all positions but the first, in either direction:
  // computes the factors of position t of the sequence. False if log space is needed, since scores
  // are too far apart or not finite.
  bool fill(int64_t t);
  // (stride, stride) [label before, label] the factors of a position, 0 in the padding; valid until
  // the next call. In later passes, factors that are no longer kept are computed again.
  const double* at(int64_t t);
  // Whether the factors of a position are kept, so that at() leaves all others in place.
  bool keeps(int64_t t) const { return block_of(t) == block_; }
  // What was subtracted from the scores of all arcs into the position of the last fill() or at().
  double shift(int64_t t) const { return shifts_[t - begin(block_)]; }

 private:
  int64_t block_of(int64_t t) const { return t / block_size_; }
  int64_t begin(int64_t block) const { return block * block_size_; }
  double* matrix(int64_t t) { return matrices_.data() + (t - begin(block_)) * size_; }
  bool compute(int64_t t);

  const ChainScores& scores_;
  int stride_;
  int64_t size_;  // of a matrix, stride * stride
  int64_t sequence_ = 0;
  int64_t block_ = 0;  // the block of positions that is kept
  int64_t block_size_ = 1;
  double arc_shift_ = 0.0;      // the largest arc
  PaddedVector arcs_;           // (K, K) arcs - arc_shift; 0 if forbidden
  std::vector<int64_t> zeros_;  // places in (K, stride) of forbidden arcs
  PaddedVector unpadded_;       // (K, K) scratch, with room for lanes; empty if K = stride
  PaddedVector matrices_;       // (block_size, stride, stride)
  std::vector<double> shifts_;  // (block_size,)
};

}  // namespace hedgerow
