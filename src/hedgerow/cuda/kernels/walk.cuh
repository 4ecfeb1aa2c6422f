// Walks: what trees add to scores.
#pragma once

#include "segments.cuh"
#include "tree_nodes.cuh"

// A node, as small as a walk needs it.
struct Step {
  int column, left;
  u32 ways;  // those of the node, and above them 2^15 + the offset
  float value;
};
__device__ __forceinline__ Step step_of(const Node& node) {
  return {node.column, node.left, node.ways | (u32)(node.offset + 0x8000) << 16, node.value};
}

// Trees that add to scores, those of output k from starts[k] to starts[k + 1] - 1.
struct Trees {
  const Node* nodes;
  const i64* first;       // (n,) the first node of each tree
  const int* sizes;       // (n,) how many nodes it has
  const double* weights;  // (n,)
  const int* starts;      // (K + 1,)
};
#define TREES \
  const Node *nodes, const i64 *first, const int *sizes, const double *weights, const int *starts
#define AS_TREES {nodes, first, sizes, weights, starts}

// out[t, k] = scores[t, k] + weight * value of the leaf of each tree of output k, one after the
// other. Blocks of the same y have the same outputs, groups[y] to groups[y + 1] - 1. They copy the
// nodes of some trees into shared memory, which has room for `capacity`, walk these for all their
// rows, and go on to the next ones; with 0 they read nodes where they are. bins (n_rows, n_bytes)
extern "C" __global__ void __launch_bounds__(256)
    add_trees(TREES, const int* groups, int capacity, const u8* bins, int n_bytes, NEIGHBOURS,
              int n_rows, const double* scores, double* out) {
  const Trees trees AS_TREES;
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
      const Step* tree = steps;
      for (int k = first_output; k < end_output; ++k) {
        const int from = starts[k] < begin ? begin : starts[k];
        const int to = starts[k + 1] < stop ? starts[k + 1] : stop;
        if (from >= to && starts[k] < starts[k + 1]) continue;
        const size_t place = (size_t)row_of * K + k;
        double score = from == starts[k] ? scores[place] : out[place];
        for (int t = from; t < to; ++t) {
          const Node* own = nodes + first[t];
          Step step = capacity > 0 ? tree[0] : step_of(own[0]);
          int at = 0;
          while (step.left >= 0) {
            const int there = neighbours.at((int)row_of, (int)(step.ways >> 16) - 0x8000);
            const int bin = there < 0 ? 0 : bins[(size_t)there * n_bytes + step.column];
            const bool is_left = goes_left(step.ways, own[at].set, bin, there < 0);
            at = step.left + (is_left ? 0 : 1);
            step = capacity > 0 ? tree[at] : step_of(own[at]);
          }
          score += weights[t] * (double)step.value;
          if (capacity > 0) tree += sizes[t];
        }
        out[place] = score;
      }
    }
    __syncthreads();
    begin = stop;
  } while (stop < end);
}

// Puts the bins (n, n_columns) of positions where their rows are in by_row (n_rows, n_bytes), and
// says which rows are whose neighbours; misses[c] = 1 if any position misses a value of column c.
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

// columns (n_columns, n_rows) = bins (n_rows, n_bytes), turned
extern "C" __global__ void __launch_bounds__(256)
    transpose_bins(const u8* bins, int n_bytes, int n_columns, int n_rows, u8* columns) {
  for (i64 row = thread_of_grid(); row < n_rows; row += threads_of_grid())
    for (int c = 0; c < n_columns; ++c)
      columns[(size_t)c * n_rows + row] = bins[(size_t)row * n_bytes + c];
}
