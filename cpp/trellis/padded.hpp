// A batch's scores for kernels in log space: rows of arcs padded to whole vectors with -inf.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"
#include "trellis/chain.hpp"

namespace hedgerow {

class PaddedScores {
 public:
  explicit PaddedScores(const ChainScores& scores);

  int n_labels() const { return scores_.n_labels; }
  int stride() const { return stride_; }
  bool has_edges() const { return scores_.has_edges(); }
  int64_t begin(int64_t sequence) const { return scores_.offsets[sequence]; }
  int64_t length(int64_t sequence) const { return scores_.length(sequence); }

  // (K,) at a position of the batch.
  const double* nodes_at(int64_t position) const {
    return scores_.nodes + position * scores_.n_labels;
  }
  // (K, stride) arcs into a position of the batch, edges added; valid until the next call.
  const double* arcs_at(int64_t position);
  // One of these arcs.
  double arc_at(int64_t position, int64_t before, int64_t label) const {
    return scores_.arc_score(position, before, label);
  }

  // Throws std::invalid_argument for NaN or +inf, with the place.
  void check(int64_t sequence, Stop& stop) const;

 private:
  const ChainScores& scores_;
  int stride_;
  PaddedVector constant_arcs_;  // (K, stride) [label before, label], without edges
  PaddedVector arcs_;           // (K, stride) plus the edges of one position; empty without edges
};

}  // namespace hedgerow
