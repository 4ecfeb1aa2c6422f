// Contexts: the previous labels, as far as trees may split on them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hedgerow {

// A position has E edges. Each leads to a label from some labels before it: its context. The first
// position of a sequence has only one context, the beginning, whose entry for label k is stored at
// edge k.
//
// The contexts of an output, which is a label, are numbered from 0; the beginning is the last one.
class Contexts {
 public:
  // `outputs` (E,): the label that an edge leads to, -1 if it is never taken. `labels` (E, n_lags):
  // 1 + the label one position before, two positions before and so on, 0 where it is not known.
  Contexts(int n_outputs, std::span<const int32_t> outputs, int n_lags,
           std::span<const uint8_t> labels);

  int n_outputs() const { return n_outputs_; }
  int64_t n_edges() const { return n_edges_; }
  int n_lags() const { return n_lags_; }
  // The output that an edge leads to.
  int output(int64_t edge) const { return outputs_[edge]; }
  // The number of the edge's context, unless the edge is never taken.
  int context(int64_t edge) const { return contexts_[edge]; }
  // Including the beginning.
  int n_contexts(int output) const { return static_cast<int>(edges_[output].size()); }
  // The edge of each context of an output, including the beginning.
  std::span<const int32_t> edges(int output) const { return edges_[output]; }
  // The label lag + 1 positions before in a context, as a bin.
  uint8_t label(int output, int context, int lag) const {
    return labels_[output][context * n_lags_ + lag];
  }
  // Whether edge e leads to output e % K, for all edges.
  bool are_pairs() const { return are_pairs_; }
  // Sum of the absolute values of a position's edges for each output, (K,).
  void sum_sizes(const double* edges, std::span<double> sums) const;

 private:
  int n_outputs_;
  int n_lags_;
  int64_t n_edges_;
  bool are_pairs_;
  std::vector<int32_t> outputs_;              // (E,)
  std::vector<int32_t> contexts_;             // (E,)
  std::vector<std::vector<int32_t>> edges_;   // by output and context
  std::vector<std::vector<uint8_t>> labels_;  // by output, context and lag
};

}  // namespace hedgerow
