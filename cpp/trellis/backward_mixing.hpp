// Mixing rates in the backward pass of a scaled chain.
#pragma once

#include <cstdint>

#include "simd.hpp"
#include "trellis/mixing_bounds.hpp"
#include "trellis/scaled_loops.hpp"

namespace hedgerow {
namespace {

// The gammas of a sequence, position by position from its end. forward() has left the messages
// beta_{t-1->t} of Eq. 17 where the gammas of the nodes will be written.
class BackwardMixing {
 public:
  // out: null if they are not wanted; begin: the first position of the sequence in the batch
  BackwardMixing(const MixingBounds* out, int64_t sequence, int64_t begin, int64_t length)
      : out_(out), sequence_(sequence), begin_(begin), length_(length) {}

  // likely: the label of position t that is nearly certain
  HEDGEROW_INLINE void arrive(int64_t t, const LikelyLabel& likely) {
    t_ = t;
    likely_after_ = likely_;
    likely_ = likely;
    if (out_ != nullptr) from_previous_ = out_->node_gammas[begin_ + t];
  }
  // The labels of t and t + 1 that are nearly certain.
  const LikelyLabel& likely() const { return likely_; }
  const LikelyLabel& likely_after() const { return likely_after_; }
  // The weight of the curvature of the sequence's pairs.
  double weight() const { return out_ == nullptr ? 0.0 : out_->weight(sequence_); }
  // The gamma of the pairs of t and t + 1.
  HEDGEROW_INLINE float pair_gamma() const {
    if (out_ == nullptr) return 0.0f;
    const float gamma = edge_gamma(from_previous_, from_next_, length_);
    if (out_->edge_gammas != nullptr) out_->edge_gammas[begin_ + t_ + 1] = gamma;
    return gamma;
  }
  // beta_{t+1->t} = alpha_{t,t+1} (1 + beta_{t+2->t+1})
  HEDGEROW_INLINE void leave(float rate) { from_next_ = rate * (1.0f + from_next_); }
  HEDGEROW_INLINE void write() const {
    if (out_ == nullptr) return;
    out_->node_gammas[begin_ + t_] = node_gamma(from_previous_, from_next_);
    if (t_ == 0 && out_->edge_gammas != nullptr) out_->edge_gammas[begin_] = 0.0f;
  }

 private:
  const MixingBounds* out_;
  int64_t sequence_, begin_, length_;
  int64_t t_ = 0;
  LikelyLabel likely_, likely_after_;  // of t and t + 1
  float from_previous_ = 0.0f;         // beta_{t-1->t}
  float from_next_ = 0.0f;             // beta_{t+1->t}, before leave() that of t + 1
};

}  // namespace
}  // namespace hedgerow
