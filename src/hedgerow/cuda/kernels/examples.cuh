// Examples: what the trees of a round learn from.
#pragma once

#include "random.cuh"
#include "tree_nodes.cuh"

// Sums of absolute gradients and of curvatures of some examples, and the largest of both.
struct Magnitudes {
  double gradients, curvatures;
  float2 largest;

  __device__ void add(float2 example) {
    gradients += fabsf(example.x);
    curvatures += example.y;
    largest = make_float2(fmaxf(largest.x, fabsf(example.x)), fmaxf(largest.y, example.y));
  }
  // Adds up those of a block, and writes them to partial (4 K, gridDim.x); all threads take part.
  __device__ void write(int k, double* partial) const {
    __shared__ double of_warps[4][8];
    const double found[4] = {warp_sum(gradients), warp_sum(curvatures), warp_max(largest.x),
                             warp_max(largest.y)};
    __syncthreads();
    if (lane_of_warp() == 0)
      for (int i = 0; i < 4; ++i) of_warps[i][threadIdx.x >> 5] = found[i];
    __syncthreads();
    if (threadIdx.x > 3) return;
    double all = 0;
    for (int w = 0; w < 8; ++w) {
      const double more = of_warps[threadIdx.x][w];
      all = threadIdx.x < 2 ? all + more : fmax(all, more);
    }
    partial[(size_t)(4 * k + threadIdx.x) * gridDim.x + blockIdx.x] = all;
  }
};

// With few labels, a thread processes all of them, so that rows are read once; with many, a block
// processes the label blockIdx.y.
#if N_LABELS <= 8
#define LABELS_OF_THREAD K
#else
#define LABELS_OF_THREAD 1
#endif

// Derivatives (K, n_rows) of the loss with respect to the scores: gradients, and bounds on the
// curvatures; zeros for rows that are not used. The gradients are slopes (n_rows, K), or those of
// the likelihood.
extern "C" __global__ void __launch_bounds__(256, LABELS_OF_THREAD <= 5 ? 4 : 2)
    derive(const double* marginals, const double* slopes, const float* gammas,
           const signed char* labels, const double* scales, const u8* selected, int n_rows,
           int first_output, double trim, float rate, float modest, int newton, float2* derivatives,
           double* partial) {
  Magnitudes magnitudes[LABELS_OF_THREAD] = {};
  for (i64 row = thread_of_grid(); row < n_rows; row += threads_of_grid()) {
    const int label = labels[row];
    const double scale = scales ? scales[row] : 1.0;
    const bool takes_part = label >= 0 && scale > 0 && (!selected || selected[row]);
    const float full = gammas[row];
    const double gamma = fminf(fmaxf(rate * full, modest), full);
    UNROLL for (int own = 0; own < LABELS_OF_THREAD; ++own) {
      const int k = blockIdx.y + own;
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
      magnitudes[own].add(found);
    }
  }
  UNROLL for (int own = 0; own < LABELS_OF_THREAD; ++own) magnitudes[own].write(blockIdx.y + own,
                                                                                partial);
}

// counts (K, 2): number of examples of each label, and of those where the label was observed
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

// Keeps all examples where the label was observed, and draws `ratio` times as many others.
// `weighting` determines the weight of these: 0, they have the total weight of all others; 1, each
// has weight 1; 2, they have the total weight of the observed ones.
extern "C" __global__ void __launch_bounds__(256)
    draw_others(float2* derivatives, const signed char* labels, const u64* identities, int n_rows,
                const u64* counts, const u64* key, double ratio, int weighting, double* partial) {
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
  Magnitudes magnitudes = {};
  for (i64 row = thread_of_grid(); row < n_rows; row += threads_of_grid()) {
    float2& example = derivatives[(size_t)k * n_rows + row];
    if (example.y > 0 && labels[row] != k) {
      const double draw = (double)(derive_key(own_key, identities[row]) >> 11) * 0x1p-53;
      const float factor = share >= 1.0 || draw < share ? weight : 0.0f;
      example = make_float2(example.x * factor, example.y * factor);
    }
    magnitudes.add(example);
  }
  magnitudes.write(k, partial);
}

// The smallest power of two such that the sum is at most 2^n_bits of it, and each number at most
// 2^bits_of_each.
__device__ __forceinline__ double choose_unit(double sum, double largest, int n_bits,
                                              int bits_of_each) {
  const int of_sum = (sum > 0 ? ilogb(sum) + 1 : 0) - n_bits;
  const int of_each = largest > 0 ? ilogb(largest) + 1 - bits_of_each : of_sum;
  return ldexp(1.0, of_sum > of_each ? of_sum : of_each);
}
// Number of terms that can be added up such that the sum stays below about 2^31.
__device__ __forceinline__ double count_safe(double sum, double largest, double unit) {
  return sum / unit <= 0x1p31 ? 0x1p30 : fmax(1.0, 0x1p30 / (largest / unit + 1.0));
}

// units (K, 2): the unit of gradients, whose sum is at most 2^gradient_bits units, and of
// curvatures. n_safe (K,): number of examples that can be added up in 32 bits. Also initialises the
// counters of examples and nodes.
extern "C" __global__ void __launch_bounds__(32)
    choose_units(const double* partial, int n_partial, int gradient_bits, int curvature_bits,
                 double* units, int* n_safe, int* n_examples, Sum* totals, int* n_nodes) {
  const int k = blockIdx.x;
  partial += (size_t)4 * k * n_partial;
  double sums[2] = {0, 0}, largest[2] = {0, 0};
  for (int which = 0; which < 2; ++which) {
    for (int i = lane_of_warp(); i < n_partial; i += 32) {
      sums[which] += partial[(size_t)which * n_partial + i];
      largest[which] = fmax(largest[which], partial[(size_t)(2 + which) * n_partial + i]);
    }
    sums[which] = warp_sum(sums[which]);
    largest[which] = warp_max(largest[which]);
  }
  if (lane_of_warp()) return;
  const double of_gradients = choose_unit(sums[0], largest[0], gradient_bits, 30);
  const double of_curvatures = choose_unit(sums[1], largest[1], curvature_bits, 31);
  units[2 * k] = of_gradients;
  units[2 * k + 1] = of_curvatures;
  n_safe[k] = (int)fmin(count_safe(sums[0], largest[0], of_gradients),
                        count_safe(sums[1], largest[1], of_curvatures));
  n_examples[k] = 0;
  n_nodes[k] = 1;
  totals[k] = {0, 0};
}

// Derivatives at a position, in units of the tree.
struct alignas(8) Example {
  int gradient;
  u32 curvature;
};
__device__ __forceinline__ Example round_to_units(float2 derivatives, double per_gradient,
                                                  double per_curvature) {
  const int gradient = (int)rint(derivatives.x * per_gradient);
  const u32 curvature = (u32)rint(derivatives.y * per_curvature);
  return {gradient, curvature > 1 ? curvature : 1};
}

// rows and examples (K, n_rows): those that are used, in any order
extern "C" __global__ void __launch_bounds__(256)
    collect_examples(const float2* derivatives, int n_rows, const double* units, int* n_examples,
                     Sum* totals, int* rows, Example* examples) {
  __shared__ int of_warps[8], base;
  __shared__ Sum totals_of_warps[8];
  const int k = blockIdx.y, lane = lane_of_warp(), warp = threadIdx.x >> 5;
  const i64 start = (i64)blockIdx.x * 2048 + warp * 256 + lane;
  const double per_gradient = 1.0 / units[2 * k], per_curvature = 1.0 / units[2 * k + 1];
  float2 found[8];
  Example own[8];
  u32 votes[8];
  int n_own = 0;
  Sum total{0, 0};
  UNROLL for (int r = 0; r < 8; ++r) {
    const i64 at = start + r * 32;
    found[r] = at < n_rows ? derivatives[(size_t)k * n_rows + at] : make_float2(0.0f, 0.0f);
  }
  UNROLL for (int r = 0; r < 8; ++r) {
    const bool is_example = found[r].y > 0;
    own[r] = {0, 0};
    if (is_example) own[r] = round_to_units(found[r], per_gradient, per_curvature);
    votes[r] = __ballot_sync(~0u, is_example);
    n_own += __popc(votes[r]);
    total = total + Sum{own[r].gradient, own[r].curvature};
  }
  total = {warp_sum(total.gradient), warp_sum(total.curvature)};
  if (lane == 0) {
    of_warps[warp] = n_own;
    totals_of_warps[warp] = total;
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
    for (int w = 1; w < 8; ++w) total = total + totals_of_warps[w];
    atomicAdd((u64*)&totals[k].gradient, (u64)total.gradient);
    atomicAdd((u64*)&totals[k].curvature, (u64)total.curvature);
  }
  __syncthreads();
  size_t at = (size_t)k * n_rows + base + of_warps[warp];
  UNROLL for (int r = 0; r < 8; ++r) {
    if (own[r].curvature > 0) {
      const size_t place = at + __popc(votes[r] & ((1u << lane) - 1));
      rows[place] = (int)(start + r * 32);
      examples[place] = own[r];
    }
    at += __popc(votes[r]);
  }
}
