// Walks: what trees add to scores.
#pragma once

#include "tree_nodes.cuh"

// out[t, k] = scores[t, k] + weight * value of the leaf of each tree of output k, one after the
// other. Trees of output k are trees[starts[k]] to trees[starts[k + 1] - 1], each by its first
// node; bins (n_rows, n_bytes).
extern "C" __global__ void __launch_bounds__(256)
    add_trees(const Node* nodes, const i64* trees, const double* weights, const int* starts,
              const u8* bins, int n_bytes, NEIGHBOURS, int n_rows, const double* scores,
              double* out) {
  const Neighbours neighbours AS_NEIGHBOURS;
  const i64 n = (i64)n_rows * K;
  for (i64 i = thread_of_grid(); i < n; i += threads_of_grid()) {
    const int row_of = (int)(i / K), k = (int)(i % K);
    if (position[row_of] < 0) continue;
    double score = scores[i];
    for (int t = starts[k]; t < starts[k + 1]; ++t) {
      const Node* tree = nodes + trees[t];
      int at = 0;
      while (tree[at].left >= 0) {
        const Node& node = tree[at];
        const int there = neighbours.at(row_of, node.offset);
        const int bin = there < 0 ? 0 : bins[(size_t)there * n_bytes + node.column];
        at = node.left + (goes_left(node, bin, there < 0) ? 0 : 1);
      }
      score += weights[t] * (double)tree[at].value;
    }
    out[i] = score;
  }
}

// columns (n_columns, n_rows) = bins (n_rows, n_bytes), turned
extern "C" __global__ void __launch_bounds__(256)
    transpose_bins(const u8* bins, int n_bytes, int n_columns, int n_rows, u8* columns) {
  for (i64 row = thread_of_grid(); row < n_rows; row += threads_of_grid())
    for (int c = 0; c < n_columns; ++c)
      columns[(size_t)c * n_rows + row] = bins[(size_t)row * n_bytes + c];
}
