// Forward-backward with more than 8 labels: one lane per label, a group of one or more warps per
// sequence.
#pragma once

#include "trellis.cuh"

#define WARPS ((K + 31) / 32)  // of a group
#define LANES (32 * WARPS)
#if N_LABELS <= 32
#define GROUPS 4  // of a block
#define UNROLL_LABELS _Pragma("unroll")
#else
#define GROUPS 1
#define UNROLL_LABELS
#endif

struct Group {
  int lane, group, n_groups;
  double* doubles;  // (LANES,) shared, and one for each warp
  float* floats;    // (LANES,)

  __device__ i64 number() const { return (i64)blockIdx.x * GROUPS + group; }
  __device__ void sync() const {
    if (WARPS == 1)
      __syncwarp();
    else
      __syncthreads();
  }
  // The sum over all lanes, for each of them.
  template <class T>
  __device__ T sum(T x) const {
    x = warp_sum(x);
    if (WARPS == 1) return x;
    doubles[LANES + lane / 32] = x;
    sync();
    double total = 0;
    for (int w = 0; w < WARPS; ++w) total += doubles[LANES + w];
    sync();
    return (T)total;
  }
  __device__ int first_of(double x, bool takes_part) const;
  __device__ double max(double x) const {
    x = warp_max(x);
    if (WARPS == 1) return x;
    doubles[LANES + lane / 32] = x;
    sync();
    for (int w = 0; w < WARPS; ++w) x = doubles[LANES + w] > x ? doubles[LANES + w] : x;
    sync();
    return x;
  }
};

// The lane with the largest value, the first one in a tie.
__device__ __forceinline__ int Group::first_of(double x, bool takes_part) const {
  const double largest = max(takes_part ? x : -INFINITE);
  const u32 votes = __ballot_sync(~0u, takes_part && x == largest);
  if (WARPS == 1) return __ffs(votes) - 1;
  doubles[LANES + lane / 32] = votes ? 32 * (lane / 32) + __ffs(votes) - 1 : LANES;
  sync();
  int first = LANES;
  for (int w = WARPS - 1; w >= 0; --w)
    if (doubles[LANES + w] < LANES) first = (int)doubles[LANES + w];
  sync();
  return first;
}

#define MAKE_GROUP                                                                    \
  __shared__ double shared_doubles[GROUPS][LANES + WARPS];                            \
  __shared__ float shared_floats[GROUPS][LANES];                                      \
  const int own_group = threadIdx.x / LANES;                                          \
  const Group group{(int)(threadIdx.x % LANES), own_group, (int)(gridDim.x * GROUPS), \
                    shared_doubles[own_group], shared_floats[own_group]};             \
  const int lane = group.lane;                                                        \
  const bool has_label = lane < K;

// sum_i row[i] matrix(i), with row in the group's shared memory.
#define DOT(out, matrix)                                       \
  {                                                            \
    double even = 0, odd = 0;                                  \
    UNROLL_LABELS for (int i = 0; i + 1 < K; i += 2) {         \
      even += group.doubles[i] * (matrix(i));                  \
      odd += group.doubles[i + 1] * (matrix(i + 1));           \
    }                                                          \
    if (K % 2) even += group.doubles[K - 1] * (matrix(K - 1)); \
    out = even + odd;                                          \
  }

// 1 - sum_i message[i] min_j matrix(j) / sums[j], with 1 / sums in the group's shared memory.
#define MIXING_RATE(rate, message, matrix)                                                         \
  {                                                                                                \
    float least = 3.4e38f;                                                                         \
    UNROLL_LABELS for (int j = 0; j < K; ++j) least = fminf(least, (matrix(j)) * group.floats[j]); \
    const float total = group.sum(has_label ? (float)(message) * least : 0.0f);                    \
    rate = fminf(fmaxf(1.0f - total, 0.0f), 1.0f);                                                 \
  }

// Like the kernels for few labels, see trellis_few.cuh; sequences are not cut.
extern "C" __global__ void __launch_bounds__(LANES* GROUPS)
    forward(const double* scores, const double* arcs, const double* factors, PIECES,
            const signed char* labels, const double* entering, double* alphas, float2* messages,
            double* losses, int* lost) {
  MAKE_GROUP
#if N_LABELS <= 32
  double column[K];
  float line[K];
  UNROLL for (int i = 0; i < K; ++i) {
    column[i] = has_label ? factors[i * K + lane] : 0.0;
    line[i] = has_label ? (float)factors[lane * K + i] : 0.0f;
  }
#define COLUMN(i) column[i]
#define LINE(i) line[i]
#else
  const int own = has_label ? lane : 0;
#define COLUMN(i) factors[(i) * K + own]
#define LINE(i) (float)factors[own * K + (i)]
#endif
  const double shift = factors[K * K];
  for (i64 c = group.number(); c < n; c += group.n_groups) {
    double alpha = 0, loss = 0;
    float message = 0;
    int label_before = -1, is_lost = 0;
    for (int t = 0; t < length[c]; ++t) {
      const int row = first[c] + t;
      const int label = labels ? labels[row] : -1;
      const double u = has_label ? scores[(size_t)row * K + lane] : -INFINITE;
      const double largest = group.max(u), f = has_label ? exp(u - largest) : 0.0;
      double s = 1.0;
      float rate = 0.0f;
      if (t > 0) {
        group.doubles[lane] = alpha;
        group.sync();
        DOT(s, COLUMN)
        group.floats[lane] = f > 0 ? 1.0f / (float)s : (float)INFINITE;
        group.sync();
        MIXING_RATE(rate, alpha, LINE)
        if (lane == 0) loss += shift - (label >= 0 ? arcs[label_before * K + label] : 0.0);
      }
      message = rate * (1.0f + message);
      alpha = has_label ? f * s : 0.0;
      const double sum = group.sum(alpha);
      alpha /= sum;
      if (has_label) alphas[(size_t)row * K + lane] = alpha;
      is_lost |= has_label && !(alpha >= SMALLEST) && !(u == -INFINITE);
      is_lost |= !(sum > 0) || !(largest < INFINITE);
      if (lane == label) loss -= u - largest;
      if (lane == 0) {
        loss += log(sum) + (label < 0 ? largest : 0.0);
        messages[row] = make_float2(0.0f, message);
      }
      label_before = label;
      group.sync();
    }
    loss = group.sum(loss);
    if (lane == 0) losses[c] = loss;
    if (is_lost) lost[sequence[c]] = 1;
  }
}
#undef COLUMN
#undef LINE

// partial (3 + 2 K K, number of groups)
extern "C" __global__ void __launch_bounds__(LANES* GROUPS)
    backward(const double* scores, const double* factors, PIECES, const float* most,
             const double* weights, const double* entering, const double* leaving,
             const float* message_before, const float* message_after, const double* losses,
             const int* lost, const float2* messages, const signed char* labels, double* marginals,
             float* gammas, double* partial) {
  MAKE_GROUP
  // Sums for the label pairs (i, lane).
  double pairs[K];
  float curvatures[K];
  UNROLL_LABELS for (int i = 0; i < K; ++i) pairs[i] = curvatures[i] = 0;
#if N_LABELS <= 32
  double line[K];
  float column[K];
  UNROLL for (int i = 0; i < K; ++i) {
    line[i] = has_label ? factors[lane * K + i] : 0.0;
    column[i] = has_label ? (float)factors[i * K + lane] : 0.0f;
  }
#define COLUMN(i) column[i]
#define LINE(i) line[i]
#else
  const int own = has_label ? lane : 0;
#define COLUMN(i) (float)factors[(i) * K + own]
#define LINE(i) factors[own * K + (i)]
#endif
  double loss = 0, n_lost = 0, n_right = 0;
  for (i64 c = group.number(); c < n; c += group.n_groups) {
    if (lost[sequence[c]]) {
      ++n_lost;
      continue;
    }
    const double weight = weights ? weights[sequence[c]] : 1.0;
    loss += weight * losses[c];
    double beta = has_label ? 1.0 : 0.0, after = 0;
    float from_next = 0, from_after_next = 0;
    // Rows are loaded one step ahead: nothing else would hide the time that this takes.
    double next_alpha = 0.0, next_score = -INFINITE;
    float next_message = 0.0f;
    const auto load = [&](int row) {
      next_message = messages[row].y;
      if (!has_label) return;
      next_alpha = marginals[(size_t)row * K + lane];
      next_score = scores[(size_t)row * K + lane];
    };
    load(first[c] + length[c] - 1);
    for (int t = length[c] - 1; t >= 0; --t) {
      const int row = first[c] + t;
      const double alpha = next_alpha, u = next_score;
      const float from_previous = next_message;
      if (t > 0) load(row - 1);
      const bool has_next = t + 1 < length[c];
      if (has_next) {
        group.doubles[lane] = after;
        group.sync();
        DOT(beta, LINE)
        if (!has_label) beta = 0;
      }
      const double per_norm = 1.0 / group.sum(alpha * beta);
      if (has_next) {
        group.sync();
        group.floats[lane] = alpha > 0 ? 1.0f / (float)beta : (float)INFINITE;
        group.doubles[lane] = alpha * per_norm;
        group.sync();
        float rate;
        MIXING_RATE(rate, after, COLUMN)
        from_next = rate * (1.0f + from_after_next);
        const float gamma = fminf(most[c], 2.0f * (3.0f + (from_previous + from_after_next)));
        const double weighted = weight * after;
        const float weighted_gamma = (float)(weight * gamma);
        UNROLL_LABELS for (int i = 0; i < K; ++i) {
          const double left = group.doubles[i];
          const float p = (float)(left * after) * COLUMN(i);
          pairs[i] += left * weighted;
          curvatures[i] += weighted_gamma * (p * (1.0f - p));
        }
      }
      if (lane == 0) gammas[row] = 2.0f * (1.0f + (from_previous + from_next));
      const double p = alpha * beta * per_norm;
      if (has_label) marginals[(size_t)row * K + lane] = p;
      if (labels) n_right += group.first_of(p, has_label) == labels[row];
      const double largest = group.max(u);
      after = has_label ? exp(u - largest) * beta : 0.0;
      after /= group.sum(after);
      from_after_next = from_next;
      group.sync();
    }
  }
  const i64 at = group.number();
  if (lane == 0) {
    partial[at] = loss;
    partial[group.n_groups + at] = n_lost;
    partial[2 * group.n_groups + at] = n_right;
  }
  if (!has_label) return;
  partial += (size_t)3 * group.n_groups;
  UNROLL_LABELS for (int i = 0; i < K; ++i) {
    partial[(size_t)(i * K + lane) * group.n_groups + at] = pairs[i];
    partial[(size_t)(K * K + i * K + lane) * group.n_groups + at] = curvatures[i];
  }
}
#undef COLUMN
#undef LINE
