// Sums of outer products over the edges of tree-shaped graphs, sequence by sequence.
//
// Passes process the nodes of several sequences level by level, but sums over all sequences are
// rounded to a grid sequence by sequence. So the rows that are multiplied are kept until a pass is
// over, those of a sequence contiguously, and then added up in registers, many at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "simd.hpp"
#include "trellis/scaled_loops.hpp"
#include "trellis/tree_graph_order.hpp"

namespace hedgerow {
namespace {

class EdgeRows {
 public:
  // n_kinds: number of rows of each node; 0: none are kept
  EdgeRows(int n_kinds, int stride) : stride_(stride), rows_(n_kinds) {}

  // Prepares the rows of the nodes of an order. Roots have no edge: their rows are zeros.
  void open(const GraphOrder& order) {
    order_ = &order;
    const size_t n = order.size() * static_cast<size_t>(stride_);
    for (PaddedVector& rows : rows_)
      if (rows.size() < n) rows.resize(n);
    for (int64_t i = 0; i < order.size() && order.parents[i] < 0; ++i)
      for (size_t kind = 0; kind < rows_.size(); ++kind)
        std::fill(row(kind, i), row(kind, i) + stride_, 0.0);
  }
  double* row(size_t kind, int64_t node) {
    return rows_[kind].data() + order_->place(node) * stride_;
  }

  // add(place, sums), for each sequence, with the sum over its nodes of left^T right at each place
  // of a table (stride, stride), left and right being kinds of rows; see sum_outer.
  template <class Add>
  HEDGEROW_INLINE void sum(size_t left, size_t right, Add add) const {
    for (size_t s = 0; s + 1 < order_->begins.size(); ++s)
      for (int64_t first = order_->begins[s]; first < order_->begins[s + 1]; first += kAtOnce) {
        const int64_t end = std::min(first + kAtOnce, order_->begins[s + 1]);
        sum_outer(rows_[left].data() + first * stride_, rows_[right].data() + first * stride_,
                  static_cast<int>(end - first), stride_, add);
      }
  }

 private:
  static constexpr int64_t kAtOnce = 32;  // rows, which stay in the cache

  int stride_;
  const GraphOrder* order_ = nullptr;
  std::vector<PaddedVector> rows_;  // (n, stride) of each kind, sequence by sequence
};

}  // namespace
}  // namespace hedgerow
