// Examples: what the trees of a round learn from.
#pragma once

#include "tree_nodes.cuh"

// Derivatives (K, n_rows) of the loss by the scores: gradients, and bounds of the curvatures; zeros
// where a row takes no part. The gradients are slopes (n_rows, K), or those of the likelihood.
extern "C" __global__ void __launch_bounds__(256)
    derive(const double* marginals, const double* slopes, const float* gammas,
           const signed char* labels, const double* scales, const u8* selected, int n_rows,
           int first_output, double trim, float rate, float modest, int newton,
           float2* derivatives) {
  for (i64 row = thread_of_grid(); row < n_rows; row += threads_of_grid()) {
    const int label = labels[row];
    const double scale = scales ? scales[row] : 1.0;
    const bool takes_part = label >= 0 && scale > 0 && (!selected || selected[row]);
    const float full = gammas[row];
    const double gamma = fminf(fmaxf(rate * full, modest), full);
    for (int k = 0; k < K; ++k) {
      float2 found = make_float2(0.0f, 0.0f);
      if (takes_part && k >= first_output) {
        const double p = marginals[row * K + k];
        const double gradient =
            slopes ? slopes[row * K + k] : p * scale - (label == k ? scale : 0.0);
        if (!(fabs(gradient) <= trim * scale)) {
          const double curvature = gamma * p * (1.0 - p);
          found.x = (float)gradient;
          found.y = (float)(newton ? scale * (curvature > 1e-16 ? curvature : 1e-16) : scale);
        }
      }
      derivatives[(size_t)k * n_rows + row] = found;
    }
  }
}

// The random numbers of random.hpp.
__device__ __forceinline__ u64 mix_bits(u64 x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}
__device__ __forceinline__ u64 derive_key(u64 key, u64 purpose) {
  return mix_bits(mix_bits(key) ^ purpose);
}

// counts (K, 2): examples of each label, and those of them where it was observed
extern "C" __global__ void __launch_bounds__(256)
    count_observed(const float2* derivatives, const signed char* labels, int n_rows, u64* counts) {
  const int k = blockIdx.y;
  u64 n_examples = 0, n_observed = 0;
  for (i64 row = thread_of_grid(); row < n_rows; row += threads_of_grid()) {
    const bool is_example = derivatives[(size_t)k * n_rows + row].y > 0;
    n_examples += is_example;
    n_observed += is_example && labels[row] == k;
  }
  n_examples = warp_sum(n_examples);
  n_observed = warp_sum(n_observed);
  if (lane_of_warp()) return;
  atomicAdd(counts + 2 * k, n_examples);
  atomicAdd(counts + 2 * k + 1, n_observed);
}

// Keeps all examples where the label was observed, and draws `ratio` as many others. These count
// for all in the mean (0), as much as any other (1), or together as much as the observed (2).
extern "C" __global__ void __launch_bounds__(256)
    draw_others(float2* derivatives, const signed char* labels, const int* position, int n_rows,
                const u64* counts, const u64* key, double ratio, int weighting) {
  const int k = blockIdx.y;
  const u64 own_key = derive_key(key[0], k);
  const u64 n_observed = counts[2 * k + 1], n_others = counts[2 * k] - n_observed;
  const double n_positives = n_observed > 0 ? (double)n_observed : 1.0;
  const double n_negatives = n_others > 0 ? (double)n_others : 1.0;
  double share = ratio * n_positives / n_negatives;
  if (share > 1.0) share = 1.0;
  const float weight = weighting == 0   ? (float)(1.0 / share)
                       : weighting == 1 ? 1.0f
                                        : (float)(n_positives / (share * n_negatives));
  for (i64 row = thread_of_grid(); row < n_rows; row += threads_of_grid()) {
    float2& example = derivatives[(size_t)k * n_rows + row];
    if (!(example.y > 0) || labels[row] == k) continue;
    const double draw = (double)(derive_key(own_key, position[row]) >> 11) * 0x1p-53;
    const float factor = share >= 1.0 || draw < share ? weight : 0.0f;
    example = make_float2(example.x * factor, example.y * factor);
  }
}

// partial (2 K, gridDim.x): sums of absolute gradients and of curvatures, by output
extern "C" __global__ void __launch_bounds__(256)
    sum_magnitudes(const float2* derivatives, int n_rows, double* partial) {
  __shared__ double of_warps[2][8];
  const int k = blockIdx.y;
  double gradients = 0, curvatures = 0;
  for (i64 row = thread_of_grid(); row < n_rows; row += threads_of_grid()) {
    const float2 example = derivatives[(size_t)k * n_rows + row];
    gradients += fabsf(example.x);
    curvatures += example.y;
  }
  gradients = warp_sum(gradients);
  curvatures = warp_sum(curvatures);
  if (lane_of_warp() == 0) {
    of_warps[0][threadIdx.x >> 5] = gradients;
    of_warps[1][threadIdx.x >> 5] = curvatures;
  }
  __syncthreads();
  if (threadIdx.x > 1) return;
  double sum = 0;
  for (int w = 0; w < 8; ++w) sum += of_warps[threadIdx.x][w];
  partial[(size_t)(2 * k + threadIdx.x) * gridDim.x + blockIdx.x] = sum;
}

// units (K, 2): powers of two such that all gradients together have up to 2^gradient_bits units,
// and all curvatures up to 2^curvature_bits. Also makes the roots of the trees.
extern "C" __global__ void __launch_bounds__(32)
    choose_units(const double* partial, int n_partial, int gradient_bits, int curvature_bits,
                 double* units, int* n_examples, Sum* totals, int* n_nodes) {
  const int k = blockIdx.x;
  for (int which = 0; which < 2; ++which) {
    double sum = 0;
    for (int i = lane_of_warp(); i < n_partial; i += 32)
      sum += partial[(size_t)(2 * k + which) * n_partial + i];
    sum = warp_sum(sum);
    const int n_bits = which == 0 ? gradient_bits : curvature_bits;
    if (lane_of_warp() == 0)
      units[2 * k + which] = ldexp(1.0, (sum > 0 ? ilogb(sum) + 1 : 0) - n_bits);
  }
  if (lane_of_warp()) return;
  n_examples[k] = 0;
  n_nodes[k] = 1;
  totals[k] = {0, 0};
}

__device__ __forceinline__ Sum round_to_units(float2 example, double per_gradient,
                                              double per_curvature) {
  const i64 gradient = (i64)rint(example.x * per_gradient);
  const i64 curvature = (i64)rint(example.y * per_curvature);
  return {gradient, curvature > 1 ? curvature : 1};
}

// rows and examples (K, n_rows): those that count, in any order
extern "C" __global__ void __launch_bounds__(256)
    collect_examples(const float2* derivatives, int n_rows, const double* units, int* n_examples,
                     Sum* totals, int* rows, float2* examples) {
  __shared__ int of_warps[8], base;
  const int k = blockIdx.y, lane = lane_of_warp(), warp = threadIdx.x >> 5;
  const i64 start = (i64)blockIdx.x * 2048 + warp * 256 + lane;
  const double per_gradient = 1.0 / units[2 * k], per_curvature = 1.0 / units[2 * k + 1];
  float2 own[8];
  u32 votes[8];
  int n_own = 0;
  Sum total{0, 0};
  UNROLL for (int r = 0; r < 8; ++r) {
    const i64 at = start + r * 32;
    own[r] = at < n_rows ? derivatives[(size_t)k * n_rows + at] : make_float2(0.0f, 0.0f);
    votes[r] = __ballot_sync(~0u, own[r].y > 0);
    n_own += __popc(votes[r]);
    if (own[r].y > 0) total = total + round_to_units(own[r], per_gradient, per_curvature);
  }
  total = {warp_sum(total.gradient), warp_sum(total.curvature)};
  if (lane == 0) {
    of_warps[warp] = n_own;
    if (n_own) {
      atomicAdd((u64*)&totals[k].gradient, (u64)total.gradient);
      atomicAdd((u64*)&totals[k].curvature, (u64)total.curvature);
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    int sum = 0;
    for (int w = 0; w < 8; ++w) {
      const int n = of_warps[w];
      of_warps[w] = sum;
      sum += n;
    }
    base = atomicAdd(n_examples + k, sum);
  }
  __syncthreads();
  size_t at = (size_t)k * n_rows + base + of_warps[warp];
  UNROLL for (int r = 0; r < 8; ++r) {
    if (own[r].y > 0) {
      const size_t place = at + __popc(votes[r] & ((1u << lane) - 1));
      rows[place] = (int)(start + r * 32);
      examples[place] = own[r];
    }
    at += __popc(votes[r]);
  }
}
