// From scores and marginals to labels.
#pragma once

#include "common.cuh"

// best_t[k] = scores[t, k] + max_j (best_{t-1}[j] + arcs[j, k]), minus the maximum of the previous
// row; one warp per sequence, whose lanes share the labels. from (n_rows, K): the j that gave the
// maximum.
extern "C" __global__ void __launch_bounds__(32)
    viterbi(const double* scores, const double* arcs, const i64* offsets, const int* rows, int n,
            u8* from, signed char* labels) {
  __shared__ double best[K], next[K];
  const int lane = lane_of_warp();
  for (int s = blockIdx.x; s < n; s += gridDim.x) {
    double largest = 0.0;
    for (i64 t = offsets[s]; t < offsets[s + 1]; ++t) {
      const int row = rows[t];
      double of_lane = -INFINITE;
      for (int k = lane; k < K; k += 32) {
        double score = scores[(size_t)row * K + k];
        if (t > offsets[s]) {
          double highest = -INFINITE;
          int chosen = 0;
          for (int j = 0; j < K; ++j) {
            const double x = best[j] + arcs[j * K + k];
            if (x > highest) {
              highest = x;
              chosen = j;
            }
          }
          score = highest + (score - largest);
          from[(size_t)row * K + k] = (u8)chosen;
        }
        next[k] = score;
        of_lane = score > of_lane ? score : of_lane;
      }
      largest = warp_max(of_lane);
      __syncwarp();
      for (int k = lane; k < K; k += 32) best[k] = next[k];
      __syncwarp();
    }
    if (lane == 0 && offsets[s] < offsets[s + 1]) {
      int label = 0;
      for (int k = 1; k < K; ++k)
        if (best[k] > best[label]) label = k;
      for (i64 t = offsets[s + 1] - 1; t >= offsets[s]; --t) {
        labels[rows[t]] = (signed char)label;
        if (t > offsets[s]) label = from[(size_t)rows[t] * K + label];
      }
    }
    __syncwarp();
  }
}

// n_right += number of rows whose label is the expected one, among rows that have a label
extern "C" __global__ void __launch_bounds__(256)
    count_right(const signed char* labels, const signed char* expected, i64 n_rows,
                double* n_right) {
  int mine = 0;
  for (i64 row = thread_of_grid(); row < n_rows; row += threads_of_grid())
    mine += expected[row] >= 0 && labels[row] == expected[row];
  mine = warp_sum(mine);
  if (lane_of_warp() == 0 && mine) atomicAdd(n_right, (double)mine);
}
