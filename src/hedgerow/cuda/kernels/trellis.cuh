// Forward-backward over first-order chains: where the rows of a sequence are, and what the kernels
// for few and for many labels share.
//
// A piece is a sequence, or a part of a long one. Position t of piece c has row first[c] + STEP t:
// with few labels, 32 pieces are interleaved, so that the threads of a warp read neighbouring rows.
#pragma once

#include "common.cuh"

#if N_LABELS <= 8
#define STEP 32
#else
#define STEP 1
#endif

// Entries of a row below this may have lost precision: the sequence is marked as lost, and the
// caller computes it again in log space.
#define SMALLEST 1e-140

struct Pieces {
  const int* first;     // (n,) row of the first position
  const int* length;    // (n,)
  const int* sequence;  // (n,) the sequence that a piece belongs to
  const int* before;    // (n,) label before the piece, -1 where a sequence begins
  int n;

  __device__ bool continues(int c) const { return before[c] >= 0; }
};

#define PIECES const int *first, const int *length, const int *sequence, const int *before, int n
#define AS_PIECES {first, length, sequence, before, n}

// factors (K, K) = exp(arcs - their maximum), then the maximum itself; if the smallest of them is
// too small to be divided by, all sequences are lost.
extern "C" __global__ void exponentiate_arcs(const double* arcs, double* factors, int* lost,
                                             int n_sequences) {
  __shared__ double largest;
  __shared__ int is_extreme;
  if (threadIdx.x < 32) {
    double x = -INFINITE;
    for (int i = threadIdx.x; i < K * K; i += 32) x = arcs[i] > x ? arcs[i] : x;
    x = warp_max(x);
    if (threadIdx.x == 0) {
      factors[K * K] = largest = x;
      is_extreme = 0;
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < K * K; i += blockDim.x) {
    factors[i] = exp(arcs[i] - largest);
    if (!(factors[i] >= 2 * SMALLEST)) is_extreme = 1;
  }
  __syncthreads();
  for (int s = threadIdx.x; s < n_sequences; s += blockDim.x) lost[s] = is_extreme;
}

// sums[i] = sum over j of table[i, j], one block for each row; the order depends on n_columns
// alone.
extern "C" __global__ void __launch_bounds__(256)
    sum_rows(const double* table, int n_columns, double* sums) {
  __shared__ double of_warps[8];
  const double* row = table + (size_t)blockIdx.x * n_columns;
  double sum = 0;
  for (int j = threadIdx.x; j < n_columns; j += 256) sum += row[j];
  sum = warp_sum(sum);
  if (lane_of_warp() == 0) of_warps[threadIdx.x >> 5] = sum;
  __syncthreads();
  if (threadIdx.x) return;
  for (int w = 1; w < 8; ++w) sum += of_warps[w];
  sums[blockIdx.x] = sum;
}

// sums[j] = sum over i of table[i, j], 32 columns for each block; the order depends on n_rows
// alone.
extern "C" __global__ void __launch_bounds__(256)
    sum_columns(const double* table, int n_rows, int n_columns, double* sums) {
  __shared__ double of_warps[8][32];
  const int lane = lane_of_warp(), warp = threadIdx.x >> 5;
  const int j = (int)blockIdx.x * 32 + lane;
  double sum = 0;
  for (int i = warp; j < n_columns && i < n_rows; i += 8) sum += table[(size_t)i * n_columns + j];
  of_warps[warp][lane] = sum;
  __syncthreads();
  if (warp > 0 || j >= n_columns) return;
  for (int w = 1; w < 8; ++w) sum += of_warps[w][lane];
  sums[j] = sum;
}

// totals[0] = sum of the losses of sequences that are not lost, always in the same order;
// totals[1] = number of sequences that are lost.
extern "C" __global__ void __launch_bounds__(256)
    sum_losses(const double* losses, const int* lost, int n, double* totals) {
  __shared__ double of_warps[2][8];
  double sums[2] = {0, 0};
  for (int s = threadIdx.x; s < n; s += 256) sums[lost[s] != 0] += lost[s] ? 1.0 : losses[s];
  for (int i = 0; i < 2; ++i) {
    const double sum = warp_sum(sums[i]);
    if (lane_of_warp() == 0) of_warps[i][threadIdx.x >> 5] = sum;
  }
  __syncthreads();
  if (threadIdx.x > 1) return;
  double sum = 0;
  for (int w = 0; w < 8; ++w) sum += of_warps[threadIdx.x][w];
  totals[threadIdx.x] = sum;
}
