// The likelihood with a weight for each position.
#pragma once

#include "trellis.cuh"

// By the chain rule log P(y) = sum_t log P(y_t | y_{t-1}); here each term has its own weight w_t.
// Expected counts at t are a measure m_t of total w_t that the conditional probabilities carry
// forward,
//   m_0(k) = w_0 P(y_0 = k),
//   m_t(k) = sum_j (m_{t-1}(j) - (w_{t-1} - w_t) [j = y_{t-1}]) P(y_t = k | y_{t-1} = j),
//   P(y_t = k | y_{t-1} = j) = E[j, k] v_t[k] / beta_{t-1}[j],  beta_{t-1} = E v_t,
// with v_t[k] = exp(scores[t, k]) beta_t[k], divided by its sum. One warp per sequence, whose
// lanes share the labels. Fills slopes (n_rows, K), expected minus observed counts, and losses
// (n,); adds the expected label pairs, to be multiplied by the factors of the arcs, to sums
// (gridDim.x, K, K), which are zeros. weights (n_rows,)
extern "C" __global__ void __launch_bounds__(32)
    weigh_positions(const double* scores, const double* factors, const i64* offsets,
                    const int* rows, int n, const signed char* labels, const double* weights,
                    int* lost, double* slopes, double* losses, double* sums) {
  __shared__ double v[K], beta[K], counts[K];
  const int lane = lane_of_warp();
  sums += (size_t)blockIdx.x * K * K;
  for (int s = blockIdx.x; s < n; s += gridDim.x) {
    if (lost[s]) continue;
    const i64 begin = offsets[s], end = offsets[s + 1];
    int is_lost = 0;
    for (i64 t = end - 1; t >= begin; --t) {
      const size_t at = (size_t)rows[t] * K;
      double largest = -INFINITE, sum = 0;
      for (int k = lane; k < K; k += 32) largest = fmax(largest, scores[at + k]);
      largest = warp_max(largest);
      for (int k = lane; k < K; k += 32) {
        double after = 1.0;
        if (t + 1 < end) {
          after = 0;
          for (int j = 0; j < K; ++j) after += factors[k * K + j] * v[j];
        }
        beta[k] = exp(scores[at + k] - largest) * after;
        sum += beta[k];
      }
      sum = warp_sum(sum);
      __syncwarp();
      for (int k = lane; k < K; k += 32) {
        slopes[at + k] = v[k] = beta[k] / sum;
        is_lost |= !(v[k] >= SMALLEST) && !(scores[at + k] == -INFINITE);
      }
      __syncwarp();
    }
    if (warp_max(is_lost)) {
      if (lane == 0) lost[s] = 1;
      continue;
    }
    double loss = 0, weight_before = 0;
    int label_before = -1;
    for (i64 t = begin; t < end; ++t) {
      const size_t at = (size_t)rows[t] * K;
      const int label = labels[rows[t]];
      const double weight = weights[rows[t]];
      for (int k = lane; k < K; k += 32) v[k] = slopes[at + k];
      __syncwarp();
      for (int j = lane; j < K && t > begin; j += 32) {
        double sum = 0;
        for (int k = 0; k < K; ++k) sum += factors[j * K + k] * v[k];
        beta[j] = sum;
        counts[j] = (counts[j] - (j == label_before ? weight_before - weight : 0.0)) / sum;
      }
      __syncwarp();
      if (weight != 0.0) {
        const double to = t > begin ? factors[label_before * K + label] / beta[label_before] : 1.0;
        loss -= weight * log(to * v[label]);
      }
      for (int pair = lane; pair < K * K && t > begin; pair += 32)
        sums[pair] += counts[pair / K] * v[pair % K];
      __syncwarp();
      for (int k = lane; k < K; k += 32) {
        double mass = weight;
        if (t > begin) {
          mass = 0;
          for (int j = 0; j < K; ++j) mass += counts[j] * factors[j * K + k];
        }
        beta[k] = mass * v[k];
        slopes[at + k] = beta[k] - (k == label ? weight : 0.0);
      }
      __syncwarp();
      for (int k = lane; k < K; k += 32) counts[k] = beta[k];
      __syncwarp();
      label_before = label;
      weight_before = weight;
    }
    if (lane == 0) losses[s] = loss;
  }
}
