// Factors of arcs that differ from position to position, for kernels in scaled probability space:
// exp(arcs + edges[t] - shift[t]).
//
// Their exponentials are what such a chain costs, so that those of a sequence are kept for the next
// pass over it, or those of one block of its positions where all would take too much memory.
#pragma once

#include <cstdint>
#include <vector>

#include "simd.hpp"
#include "trellis/chain.hpp"

namespace hedgerow {

// Scratch memory of one thread. Nothing in it is used where the scores have no edges.
class EdgeFactors {
 public:
  explicit EdgeFactors(const ChainScores& scores);

  bool given() const { return scores_.has_edges(); }
  // Begins a sequence. keep: whether there will be more than one pass over it
  void open(int64_t sequence, bool keep);
  // In the first pass, which goes through the positions but the first in either direction: computes
  // those of position t of the sequence. False where log space is needed: scores lie too far apart,
  // or are not finite.
  bool fill(int64_t t);
  // (stride, stride) [label before, label] those of a position, 0 in the padding; valid until the
  // next call. In later passes what is no longer there is computed again.
  const double* at(int64_t t);
  // Whether those of a position are there, and at() leaves all others where they are.
  bool keeps(int64_t t) const { return block_of(t) == block_; }
  // What was subtracted from the scores of all arcs into the position of the last fill or at.
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
