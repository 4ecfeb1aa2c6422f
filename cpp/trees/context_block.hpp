// Derivatives of a block of positions by edge, in single precision.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "simd.hpp"
#include "trees/contexts.hpp"

namespace hedgerow {

// Derivatives of the loss with respect to the scores of E edges, of some consecutive sequences.
struct EdgeDerivatives {
  int64_t first_position;  // of all positions
  int64_t n_positions;
  int64_t n_sequences;
  const int64_t* offsets;       // (n_sequences + 1,) from 0
  const double* gradients;      // (N, E)
  const double* probabilities;  // (N, E); null: every example has the curvature of its position
  const float* curvatures;      // (N,) that of an edge is this times p (1 - p)
  // Where given, (N,): the gradients are expected counts, from which 1 is subtracted at the
  // observed edge (-1: at none), and which are then multiplied by the weight of the position (null:
  // 1).
  const int32_t* observed = nullptr;
  const double* weights = nullptr;
  // (N,) parents in tree-shaped graphs, negative at roots, which are treated like first positions.
  const int32_t* parents = nullptr;
  // Where given with the observed edges, (N, K): expected counts of the outputs, each the sum over
  // its edges.
  const double* totals = nullptr;
  // Probabilities of label pairs may be given by output instead if there are many labels, with the
  // observed edges and totals; gradients and probabilities are then null. See PairsByLabel.
  const float* by_label = nullptr;  // (K, M, K + 1) probabilities, of all M positions, which must
                                    // remain valid until trees are grown
  int64_t n_by_label = 0;           // M
  const double* observed_probs = nullptr;  // (N,) that of the observed edge

  double weight(int64_t t) const { return weights == nullptr ? 1.0 : weights[t]; }
  // Whether the gradients are the probabilities themselves, except at the observed edge, as for the
  // likelihood without weights of positions.
  bool are_shared() const {
    return gradients == probabilities && observed != nullptr && weights == nullptr;
  }
  bool has_probabilities() const { return probabilities != nullptr || by_label != nullptr; }
  // The expected count of the observed edge, where there is one.
  double observed_count(int64_t t, bool is_first, const Contexts& contexts) const {
    if (by_label == nullptr) return gradients[t * contexts.n_edges() + observed[t]];
    return is_first ? totals[t * contexts.n_outputs() + observed[t]] : observed_probs[t];
  }
  // The gradient at the observed edge.
  float observed_gradient(int64_t t, bool is_first, const Contexts& contexts) const {
    return static_cast<float>(weight(t) * (observed_count(t, is_first, contexts) - 1.0));
  }
};

// Numbers by edge. The contexts of an output are contiguous where that is faster: for pairs of many
// labels.
class ContextBlock {
 public:
  explicit ContextBlock(const Contexts& contexts);

  // The end of the positions that were read.
  int64_t end() const { return end_; }
  // Reads positions from t on, as many as fit, but none from `end` on. If only one fits, only the
  // edges of `outputs` have to be read. Gradients that are shared are not read.
  void read(const EdgeDerivatives& derivatives, int64_t t, int64_t end,
            std::span<const int32_t> outputs);

  // Copy the numbers of an output at a position, (n_contexts,), to `out`, and return where they can
  // be read again quickly; the first `n` of them may differ from 0. The compiler may know
  // n_contexts.
  const float* copy_gradients(int64_t t, bool is_first, int output, int n_contexts, float* out,
                              int& n) const {
    return copy(gradients_, t, is_first, output, n_contexts, out, n);
  }
  const float* copy_probabilities(int64_t t, bool is_first, int output, int n_contexts, float* out,
                                  int& n) const {
    return copy(probabilities_, t, is_first, output, n_contexts, out, n);
  }

 private:
  static constexpr int64_t kNumbers = 1 << 12;  // they stay in the cache
  static constexpr int kManyLabels = 8;         // from this many on, contexts are contiguous

  void scale(const double* in, double weight, std::span<const int32_t> outputs, float* out) const;
  const float* copy(const std::vector<float>& numbers, int64_t t, bool is_first, int output,
                    int n_contexts, float* out, int& n) const;

  const Contexts& contexts_;
  bool transposed_;                   // the previous label is the last axis
  int64_t size_;                      // maximum number of positions
  int64_t begin_ = 0, end_ = 0;       // positions that were read
  std::vector<float> gradients_;      // (size, E)
  std::vector<float> probabilities_;  // (size, E), between 0 and 1
};

HEDGEROW_INLINE const float* ContextBlock::copy(const std::vector<float>& numbers, int64_t t,
                                                bool is_first, int output, int n_contexts,
                                                float* out, int& n) const {
  const int32_t* edges = contexts_.edges(output).data();
  const int last = n_contexts - 1;
  const bool transposed = last >= kManyLabels && transposed_;
  const float* from = numbers.data() + (t - begin_) * contexts_.n_edges();
  if (transposed) from += int64_t{output} * contexts_.n_outputs();
  if (is_first)
    std::fill_n(out, last, 0.0f);
  else if (transposed)
    std::copy_n(from, last, out);
  else
    for (int c = 0; c < last; ++c) out[c] = from[edges[c]];
  // The entry of the beginning is stored at the edge with the number of the output.
  out[last] = !is_first ? 0.0f : transposed ? from[0] : from[edges[last]];
  // Numbers that have just been written are slow to read again.
  const bool read_here = transposed && !is_first;
  n = read_here ? last : n_contexts;
  return read_here ? from : out;
}

}  // namespace hedgerow
