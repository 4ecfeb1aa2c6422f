// Derivatives of marginals along a direction of the scores.
#pragma once

#include "trellis.cuh"

// One warp per sequence, whose lanes share the labels. With a dot for derivatives along `direction`
// (n_rows, K), and rows that sum to 1,
//   alpha_t = f_t (E' alpha_{t-1}) / c_t,  alpha._t = f_t (E' alpha._{t-1}) / c_t + d_t alpha_t,
// minus alpha_t times the sum of alpha._t, with d_t the row of `direction`; likewise for the
// messages from the right. Fills tangents (n_rows, K) of the marginals, and adds the derivatives of
// expected label pairs to sums (gridDim.x, K, K), which are zeros. alphas and
// moves (n_rows, K) are scratch.
extern "C" __global__ void __launch_bounds__(32)
    find_tangents(const double* scores, const double* factors, const i64* offsets, const int* rows,
                  int n, const double* direction, const int* lost, double* alphas, double* moves,
                  double* tangents, double* sums) {
  __shared__ double left[K], left_move[K], right[K], right_move[K];
  const int lane = lane_of_warp();
  sums += (size_t)blockIdx.x * K * K;
  for (int s = blockIdx.x; s < n; s += gridDim.x) {
    if (lost[s]) continue;
    for (i64 t = offsets[s]; t < offsets[s + 1]; ++t) {
      const size_t at = (size_t)rows[t] * K;
      double largest = -INFINITE, sum = 0, move = 0;
      for (int k = lane; k < K; k += 32) largest = fmax(largest, scores[at + k]);
      largest = warp_max(largest);
      for (int k = lane; k < K; k += 32) {
        double before = 1.0, before_move = 0;
        if (t > offsets[s]) {
          before = 0;
          for (int j = 0; j < K; ++j) {
            before += left[j] * factors[j * K + k];
            before_move += left_move[j] * factors[j * K + k];
          }
        }
        const double f = exp(scores[at + k] - largest);
        right[k] = f * before;
        right_move[k] = f * before_move + direction[at + k] * (f * before);
        sum += right[k];
        move += right_move[k];
      }
      sum = warp_sum(sum);
      move = warp_sum(move) / sum;
      __syncwarp();
      for (int k = lane; k < K; k += 32) {
        alphas[at + k] = left[k] = right[k] / sum;
        moves[at + k] = left_move[k] = right_move[k] / sum - left[k] * move;
      }
      __syncwarp();
    }
    for (i64 t = offsets[s + 1] - 1; t >= offsets[s]; --t) {
      const size_t at = (size_t)rows[t] * K;
      const bool has_next = t + 1 < offsets[s + 1];
      // right: v_{t+1}, from which beta_t = E v_{t+1}
      double norm = 0, change = 0;
      for (int i = lane; i < K; i += 32) {
        double beta = 1.0, move = 0;
        if (has_next) {
          beta = 0;
          for (int j = 0; j < K; ++j) {
            beta += factors[i * K + j] * right[j];
            move += factors[i * K + j] * right_move[j];
          }
        }
        left[i] = beta;
        left_move[i] = move;
        norm += alphas[at + i] * beta;
        change += moves[at + i] * beta + alphas[at + i] * move;
      }
      norm = warp_sum(norm);
      change = warp_sum(change) / norm;
      __syncwarp();
      if (has_next)
        for (int pair = lane; pair < K * K; pair += 32) {
          const int i = pair / K, j = pair % K;
          const double p = alphas[at + i] * right[j];
          const double move = moves[at + i] * right[j] + alphas[at + i] * right_move[j];
          sums[pair] += factors[pair] * (move - p * change) / norm;
        }
      __syncwarp();
      double largest = -INFINITE, sum = 0, total = 0;
      for (int k = lane; k < K; k += 32) largest = fmax(largest, scores[at + k]);
      largest = warp_max(largest);
      for (int k = lane; k < K; k += 32) {
        const double p = alphas[at + k] * left[k], f = exp(scores[at + k] - largest);
        tangents[at + k] =
            (moves[at + k] * left[k] + alphas[at + k] * left_move[k] - p * change) / norm;
        right[k] = f * left[k];
        right_move[k] = f * left_move[k] + direction[at + k] * right[k];
        sum += right[k];
        total += right_move[k];
      }
      sum = warp_sum(sum);
      total = warp_sum(total) / sum;
      __syncwarp();
      for (int k = lane; k < K; k += 32) {
        right[k] /= sum;
        right_move[k] = right_move[k] / sum - right[k] * total;
      }
      __syncwarp();
    }
  }
}
