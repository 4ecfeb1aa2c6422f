// Walks: what trees add to scores.
#pragma once

#include "segments.cuh"
#include "tree_nodes.cuh"

// A node, reduced to what a walk needs.
struct alignas(8) Step {
  u32 asked;   // 2^8 + the offset in the low bits, above them the column; the value of a leaf
  u32 onward;  // ways of the node in the low bits, above them 1 + the left child; 0: a leaf

  __device__ bool is_leaf() const { return onward == 0; }
  __device__ int left() const { return (int)(onward >> WAYS_BITS) - 1; }
  __device__ int offset() const { return (int)(asked & 511) - 256; }
  __device__ int column() const { return (int)(asked >> 9); }
};
__device__ __forceinline__ Step step_of(const Node& node) {
  if (node.left < 0) return {__float_as_uint(node.value), 0};
  return {(u32)node.column << 9 | (u32)(node.offset + 256),
          (u32)(node.left + 1) << WAYS_BITS | node.ways};
}

// What the leaf of a tree adds at a row. The steps are in shared memory; if null, nodes are read
// from global memory.
__device__ __forceinline__ double walk(const Step* steps, const Node* nodes, int row,
                                       const Neighbours& neighbours, const u8* bins, int n_bytes) {
  Step step = steps ? steps[0] : step_of(nodes[0]);
  int at = 0;
  while (!step.is_leaf()) {
    const int there = neighbours.at(row, step.offset());
    const int bin = there < 0 ? 0 : bins[(size_t)there * n_bytes + step.column()];
    at = step.left() + (goes_left(step.onward, nodes[at].set, bin, there < 0) ? 0 : 1);
    step = steps ? steps[at] : step_of(nodes[at]);
  }
  return __uint_as_float(step.asked);
}

// out[t, k] = scores[t, k] + weights[k] * value of the leaf of tree k; every tree has n_nodes
// nodes. Blocks with the same blockIdx.y have n_outputs of the trees in shared memory.
// bins (n_rows, n_bytes)
extern "C" __global__ void __launch_bounds__(256)
    add_round(const Node* nodes, int n_nodes, const double* weights, int n_outputs, const u8* bins,
              int n_bytes, NEIGHBOURS, int n_rows, const double* scores, double* out) {
  const Neighbours neighbours AS_NEIGHBOURS;
  DYNAMIC_SHARED(Step, steps);
  const int first = blockIdx.y * n_outputs, n_own = K - first < n_outputs ? K - first : n_outputs;
  nodes += (size_t)first * n_nodes;
  for (int i = threadIdx.x; i < n_own * n_nodes; i += 256) steps[i] = step_of(nodes[i]);
  __syncthreads();
  const int n_together = 256 / n_own, own = threadIdx.x % n_own;
  i64 row_of = (i64)blockIdx.x * n_together + threadIdx.x / n_own;
  if (threadIdx.x >= n_together * n_own) row_of = n_rows;
  for (; row_of < n_rows; row_of += (i64)gridDim.x * n_together) {
    if (position[row_of] < 0) continue;
    const size_t place = (size_t)row_of * K + first + own;
    const double value = walk(steps + own * n_nodes, nodes + (size_t)own * n_nodes, (int)row_of,
                              neighbours, bins, n_bytes);
    out[place] = scores[place] + weights[first + own] * value;
  }
}

// The same with any number of trees per output, one after the other. Blocks with blockIdx.y = y
// have the outputs groups[y] to groups[y + 1] - 1. They copy some trees into shared memory, which
// has space for `capacity` nodes, walk these for all their rows, and continue with the next ones;
// if it is 0, they read nodes from global memory. Trees starts[k] to starts[k + 1] - 1 are those of
// output k; `first` and `sizes` are the first node and the number of nodes of each tree.
extern "C" __global__ void __launch_bounds__(256)
    add_trees(const Node* nodes, const i64* first, const int* sizes, const double* weights,
              const int* starts, const int* groups, int capacity, const u8* bins, int n_bytes,
              NEIGHBOURS, int n_rows, const double* scores, double* out) {
  const Neighbours neighbours AS_NEIGHBOURS;
  DYNAMIC_SHARED(Step, steps);
  const int first_output = groups[blockIdx.y], end_output = groups[blockIdx.y + 1];
  const int end = starts[end_output];
  int begin = starts[first_output], stop = begin;
  do {
    int n_steps = 0;
    for (; stop < end && (capacity == 0 || n_steps + sizes[stop] <= capacity); ++stop) {
      for (int i = threadIdx.x; capacity > 0 && i < sizes[stop]; i += 256)
        steps[n_steps + i] = step_of(nodes[first[stop] + i]);
      n_steps += sizes[stop];
    }
    __syncthreads();
    for (i64 row_of = thread_of_grid(); row_of < n_rows; row_of += threads_of_grid()) {
      if (position[row_of] < 0) continue;
      const Step* tree = capacity > 0 ? steps : 0;
      for (int k = first_output; k < end_output; ++k) {
        const int from = starts[k] < begin ? begin : starts[k];
        const int to = starts[k + 1] < stop ? starts[k + 1] : stop;
        if (from >= to && starts[k] < starts[k + 1]) continue;
        const size_t place = (size_t)row_of * K + k;
        double score = from == starts[k] ? scores[place] : out[place];
        for (int t = from; t < to; ++t) {
          score +=
              weights[t] * walk(tree, nodes + first[t], (int)row_of, neighbours, bins, n_bytes);
          if (tree) tree += sizes[t];
        }
        out[place] = score;
      }
    }
    __syncthreads();
    begin = stop;
  } while (stop < end);
}

// Copies the bins (n, n_columns) of positions to their rows in by_row (n_rows, n_bytes), and fills
// the arrays of Neighbours; misses[c] = 1 if column c has a missing value at any position.
extern "C" __global__ void __launch_bounds__(256)
    lay_out(const u8* bins, int n_columns, int n, const i64* offsets, int n_sequences, int n_bytes,
            int* position, const int* row, u8* before, u8* after, u8* by_row, u8* misses) {
  for (i64 t = thread_of_grid(); t < n; t += threads_of_grid()) {
    const int s = find_segment(offsets, n_sequences, t), to = row[t];
    const i64 n_before = t - offsets[s], n_after = offsets[s + 1] - 1 - t;
    position[to] = (int)t;
    before[to] = n_before < 255 ? n_before : 255;
    after[to] = n_after < 255 ? n_after : 255;
    for (int c = 0; c < n_columns; ++c) {
      const u8 bin = bins[t * n_columns + c];
      by_row[(size_t)to * n_bytes + c] = bin;
      if (bin == 0) misses[c] = 1;
    }
  }
}

// columns (n_columns, n_rows) = bins (n_rows, n_bytes), transposed
extern "C" __global__ void __launch_bounds__(256)
    transpose_bins(const u8* bins, int n_bytes, int n_columns, int n_rows, u8* columns) {
  for (i64 row = thread_of_grid(); row < n_rows; row += threads_of_grid())
    for (int c = 0; c < n_columns; ++c)
      columns[(size_t)c * n_rows + row] = bins[(size_t)row * n_bytes + c];
}
