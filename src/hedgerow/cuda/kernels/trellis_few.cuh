// Forward-backward with up to 8 labels: one thread per piece.
//
// Long sequences are cut into pieces. What a piece does to any row that enters it is a product of
// matrices; a scan over these products gives the rows that enter each piece from either side, and
// then all pieces are processed at the same time.
#pragma once

#include "trellis.cuh"

#if N_LABELS <= 5
typedef double Accumulator;
#else
typedef float Accumulator;  // registers are scarce
#endif

// Threads of a block that scans the pieces of a sequence: shared memory has a matrix for each.
#define SCAN_THREADS (N_LABELS <= 6 ? 128 : 64)

__device__ __forceinline__ void load_row(const double* table, int row, double* out) {
  UNROLL for (int k = 0; k < K; ++k) out[k] = table[(size_t)row * K + k];
}
// factors = exp(scores - their maximum), which is returned
__device__ __forceinline__ double exponentiate(const double* scores, double* factors) {
  double largest = scores[0];
  UNROLL for (int k = 1; k < K; ++k) largest = scores[k] > largest ? scores[k] : largest;
  UNROLL for (int k = 0; k < K; ++k) factors[k] = exp(scores[k] - largest);
  return largest;
}
__device__ __forceinline__ double normalize(double* row) {
  double sum = 0;
  UNROLL for (int k = 0; k < K; ++k) sum += row[k];
  const double per_sum = 1.0 / sum;
  UNROLL for (int k = 0; k < K; ++k) row[k] *= per_sum;
  return sum;
}
// out[j] = sum_i row[i] matrix[i, j]
__device__ __forceinline__ void row_times(const double* row, const double* matrix, double* out) {
  UNROLL for (int j = 0; j < K; ++j) {
    out[j] = 0;
    UNROLL for (int i = 0; i < K; ++i) out[j] += row[i] * matrix[i * K + j];
  }
}
// out[i] = sum_j matrix[i, j] column[j]
__device__ __forceinline__ void times_column(const double* matrix, const double* column,
                                             double* out) {
  UNROLL for (int i = 0; i < K; ++i) {
    out[i] = 0;
    UNROLL for (int j = 0; j < K; ++j) out[i] += matrix[i * K + j] * column[j];
  }
}
// out = a b, divided by the sum of all entries
__device__ __forceinline__ void multiply(const double* a, const double* b, double* out) {
  double total = 0;
  UNROLL for (int i = 0; i < K; ++i) {
    row_times(a + i * K, b, out + i * K);
    UNROLL for (int j = 0; j < K; ++j) total += out[i * K + j];
  }
  total = 1.0 / total;
  UNROLL for (int i = 0; i < K * K; ++i) out[i] *= total;
}
__device__ __forceinline__ void set_identity(double* matrix) {
  UNROLL for (int i = 0; i < K * K; ++i) matrix[i] = i % (K + 1) == 0 ? 1.0 : 0.0;
}

// The mixing rate of two neighbours, 1 - sum_i message[i] min_j factor(i, j) / sums[j]; impossible
// labels j have sums of 0, and are never the minimum.
#define MIXING_RATE(rate, message, sums, factor)                                             \
  {                                                                                          \
    float per_sum[K], total = 0;                                                             \
    UNROLL for (int j = 0; j < K; ++j) per_sum[j] = 1.0f / (float)(sums)[j];                 \
    UNROLL for (int i = 0; i < K; ++i) {                                                     \
      float least = 3.4e38f;                                                                 \
      UNROLL for (int j = 0; j < K; ++j) least = fminf(least, (float)(factor) * per_sum[j]); \
      total += (float)(message)[i] * least;                                                  \
    }                                                                                        \
    rate = fminf(fmaxf(1.0f - total, 0.0f), 1.0f);                                           \
  }

// alpha_t[k] = exp(scores[t, k]) sum_j alpha_{t-1}[j] exp(arcs[j, k]), each row divided by its sum.
// losses[c] = log Z - score of the labels, the part that the piece contributes. The message
// beta_{t-1->t} of the mixing rates (Chen et al., 2015, Eq. 17) is messages.x * (that before the
// piece) + messages.y.
extern "C" __global__ void __launch_bounds__(128)
    forward(const double* scores, const double* arcs, const double* factors, PIECES,
            const signed char* labels, const double* entering, double* alphas, float2* messages,
            double* losses, int* lost) {
  const Pieces pieces AS_PIECES;
  const i64 c = thread_of_grid();
  if (c >= n) return;
  double E[K * K];
  UNROLL for (int i = 0; i < K * K; ++i) E[i] = factors[i];
  const double shift = factors[K * K];
  int row = first[c], label_before = before[c];
  bool has_before = pieces.continues(c);
  double alpha[K], next[K], loss = 0;
  if (has_before) load_row(entering, c, alpha);
  load_row(scores, row, next);
  float2 message = make_float2(1.0f, 0.0f);
  bool is_lost = false;
  for (int t = 0; t < length[c]; ++t, row += STEP) {
    double u[K], f[K], s[K];
    UNROLL for (int k = 0; k < K; ++k) u[k] = next[k];
    if (t + 1 < length[c]) load_row(scores, row + STEP, next);
    const double largest = exponentiate(u, f);
    const int label = labels ? labels[row] : -1;
    float rate = 0.0f;
    if (has_before) {
      row_times(alpha, E, s);
      // Labels that are impossible at t are left out.
      double possible[K];
      UNROLL for (int k = 0; k < K; ++k) possible[k] = f[k] > 0 ? s[k] : 0.0;
      MIXING_RATE(rate, alpha, possible, E[i * K + j])
      loss += shift - (label >= 0 ? arcs[label_before * K + label] : 0.0);
    } else {
      UNROLL for (int k = 0; k < K; ++k) s[k] = 1.0;
    }
    message = make_float2(rate * message.x, rate * (1.0f + message.y));
    UNROLL for (int k = 0; k < K; ++k) alpha[k] = f[k] * s[k];
    const double sum = normalize(alpha);
    UNROLL for (int k = 0; k < K; ++k) {
      alphas[(size_t)row * K + k] = alpha[k];
      is_lost |= !(alpha[k] >= SMALLEST) && !(u[k] == -INFINITE);
      loss -= label == k ? u[k] - largest : 0.0;
    }
    is_lost |= !(sum > 0) || !(largest < INFINITE);
    loss += log(sum);
    if (label < 0) loss += largest;
    messages[row] = message;
    label_before = label >= 0 ? label : label_before;
    has_before = true;
  }
  losses[c] = loss;
  if (is_lost) lost[sequence[c]] = 1;
}

// beta_{t-1}[j] = sum_k exp(arcs[j, k]) v_t[k], with v_t[k] = exp(scores[t, k]) beta_t[k] divided
// by its sum. The marginals alpha_t beta_t / n_t take the place of the alphas. Also writes sums
// over the pieces of each warp to partial (3 + 2 K K, number of warps): the losses, the number of
// pieces of lost sequences, the number of labels that are the most probable ones, then n_{t-1}^-1
// alpha_{t-1}[j] v_t[k], to be multiplied by the factors of the arcs, and the curvatures of the
// arcs.
extern "C" __global__ void __launch_bounds__(128)
    backward(const double* scores, const double* factors, PIECES, const float* most,
             const double* weights, const double* entering, const double* leaving,
             const float* message_before, const float* message_after, const double* losses,
             const int* lost, const float2* messages, const signed char* labels, double* marginals,
             float* gammas, double* partial) {
  const Pieces pieces AS_PIECES;
  __shared__ double E[K * K];
  for (int i = threadIdx.x; i < K * K; i += blockDim.x) E[i] = factors[i];
  __syncthreads();
  const i64 c = thread_of_grid();
  double pairs[K * K];
  Accumulator curvatures[K * K];
  UNROLL for (int i = 0; i < K * K; ++i) pairs[i] = curvatures[i] = 0;
  const bool is_lost = c < n && lost[sequence[c]];
  double loss = 0;
  int n_right = 0;
  if (c < n && !is_lost) {
    const bool has_before = pieces.continues(c);
    const float from_first = message_before ? message_before[c] : 0.0f;
    const double weight = weights ? weights[sequence[c]] : 1.0;
    float from_next = message_after ? message_after[c] : 0.0f, from_after_next = 0.0f;
    loss = weight * losses[c];
    double beta[K], after[K];
    UNROLL for (int k = 0; k < K; ++k) {
      beta[k] = leaving ? leaving[(size_t)c * K + k] : 1.0;
      after[k] = 0;
    }
    int row = first[c] + STEP * (length[c] - 1);
    // The arc into the piece belongs to it, so it takes one more step.
    for (int t = length[c] - 1; t >= (has_before ? -1 : 0); --t, row -= STEP) {
      double alpha[K];
      float from_previous = from_first;
      if (t >= 0) {
        load_row(marginals, row, alpha);
        const float2 message = messages[row];
        from_previous = message.x * from_first + message.y;
      } else {
        load_row(entering, c, alpha);
      }
      const bool has_next = t + 1 < length[c];
      if (has_next) times_column(E, after, beta);
      double norm = 0;
      UNROLL for (int k = 0; k < K; ++k) norm += alpha[k] * beta[k];
      const double per_norm = 1.0 / norm;
      if (has_next) {
        float rate;
        double possible[K];
        UNROLL for (int k = 0; k < K; ++k) possible[k] = alpha[k] > 0 ? beta[k] : 0.0;
        MIXING_RATE(rate, after, possible, E[j * K + i])
        from_next = rate * (1.0f + from_after_next);
        const float gamma = fminf(most[c], 2.0f * (3.0f + (from_previous + from_after_next)));
        UNROLL for (int i = 0; i < K; ++i) {
          const double left = alpha[i] * per_norm;
          UNROLL for (int j = 0; j < K; ++j) {
            const double pair = left * after[j], p = pair * E[i * K + j];
            pairs[i * K + j] += weight * pair;
            curvatures[i * K + j] += (Accumulator)(weight * gamma * (p * (1.0 - p)));
          }
        }
      }
      if (t < 0) break;
      gammas[row] = 2.0f * (1.0f + (from_previous + from_next));
      double u[K], f[K];
      load_row(scores, row, u);
      exponentiate(u, f);
      int probable = 0;
      double highest = -1.0;
      UNROLL for (int k = 0; k < K; ++k) {
        const double p = alpha[k] * beta[k] * per_norm;
        marginals[(size_t)row * K + k] = p;
        if (p > highest) {
          highest = p;
          probable = k;
        }
        after[k] = f[k] * beta[k];
      }
      n_right += labels && labels[row] == probable;
      normalize(after);
      from_after_next = from_next;
    }
  }
  const int n_warps = gridDim.x * (blockDim.x >> 5);
  const i64 warp = c >> 5;
  loss = warp_sum(loss);
  const int n_lost = warp_sum((int)is_lost);
  n_right = warp_sum(n_right);
  if (lane_of_warp() == 0) {
    partial[warp] = loss;
    partial[n_warps + warp] = n_lost;
    partial[2 * n_warps + warp] = n_right;
  }
  partial += (size_t)3 * n_warps;
  UNROLL for (int i = 0; i < K * K; ++i) {
    const double of_pairs = warp_sum(pairs[i]), of_curvatures = warp_sum((double)curvatures[i]);
    if (lane_of_warp()) continue;
    partial[(size_t)i * n_warps + warp] = of_pairs;
    partial[(size_t)(K * K + i) * n_warps + warp] = of_curvatures;
  }
}

// What a piece does to a row that enters it: products (n, K, K), each up to a factor.
extern "C" __global__ void __launch_bounds__(128)
    multiply_pieces(const double* scores, const double* factors, PIECES, double* products) {
  const Pieces pieces AS_PIECES;
  const i64 c = thread_of_grid();
  if (c >= n) return;
  double E[K * K], product[K * K];
  UNROLL for (int i = 0; i < K * K; ++i) E[i] = factors[i];
  set_identity(product);
  int row = first[c];
  for (int t = 0; t < length[c]; ++t, row += STEP) {
    double u[K], f[K], next[K * K];
    load_row(scores, row, u);
    exponentiate(u, f);
    if (t == 0 && !pieces.continues(c)) {
      UNROLL for (int i = 0; i < K * K; ++i) product[i] = f[i % K];
      continue;
    }
    multiply(product, E, next);
    UNROLL for (int i = 0; i < K * K; ++i) product[i] = next[i] * f[i % K];
  }
  UNROLL for (int i = 0; i < K * K; ++i) products[(size_t)c * K * K + i] = product[i];
}

// The rows that enter each of the matrices begin to end - 1 from the left, if `left` enters the
// first, and from the right, if `right` enters the last.
__device__ __forceinline__ void spread_rows(const double* products, int begin, int end,
                                            const double* left, const double* right,
                                            double* entering, double* leaving) {
  double row[K], moved[K];
  UNROLL for (int k = 0; k < K; ++k) row[k] = left[k];
  for (int c = begin; c < end; ++c) {
    UNROLL for (int k = 0; k < K; ++k) entering[(size_t)c * K + k] = row[k];
    row_times(row, products + (size_t)c * K * K, moved);
    normalize(moved);
    UNROLL for (int k = 0; k < K; ++k) row[k] = moved[k];
  }
  UNROLL for (int k = 0; k < K; ++k) row[k] = right[k];
  for (int c = end - 1; c >= begin; --c) {
    UNROLL for (int k = 0; k < K; ++k) leaving[(size_t)c * K + k] = row[k];
    times_column(products + (size_t)c * K * K, row, moved);
    normalize(moved);
    UNROLL for (int k = 0; k < K; ++k) row[k] = moved[k];
  }
}

// The rows that enter each piece from the left and from the right, (n, K), for the pieces starts[s]
// to starts[s + 1] of each sequence: one block per sequence, whose threads have neighbouring
// pieces.
extern "C" __global__ void __launch_bounds__(SCAN_THREADS)
    scan_products(const double* products, const int* starts, double* entering, double* leaving) {
  __shared__ double of_threads[SCAN_THREADS * K * K], from_left[SCAN_THREADS * K],
      from_right[SCAN_THREADS * K];
  const int start = starts[blockIdx.x], n = starts[blockIdx.x + 1] - start, at = threadIdx.x;
  const int begin = start + (int)((i64)n * at / SCAN_THREADS),
            end = start + (int)((i64)n * (at + 1) / SCAN_THREADS);
  double product[K * K], next[K * K], row[K], moved[K];
  set_identity(product);
  for (int c = begin; c < end; ++c) {
    multiply(product, products + (size_t)c * K * K, next);
    UNROLL for (int i = 0; i < K * K; ++i) product[i] = next[i];
  }
  UNROLL for (int i = 0; i < K * K; ++i) of_threads[at * K * K + i] = product[i];
  __syncthreads();
  UNROLL for (int k = 0; k < K; ++k) row[k] = 1.0;
  if (at == 0)
    for (int i = 0; i < SCAN_THREADS; ++i) {
      UNROLL for (int k = 0; k < K; ++k) from_left[i * K + k] = row[k];
      row_times(row, of_threads + i * K * K, moved);
      normalize(moved);
      UNROLL for (int k = 0; k < K; ++k) row[k] = moved[k];
    }
  if (at == 32)
    for (int i = SCAN_THREADS - 1; i >= 0; --i) {
      UNROLL for (int k = 0; k < K; ++k) from_right[i * K + k] = row[k];
      times_column(of_threads + i * K * K, row, moved);
      normalize(moved);
      UNROLL for (int k = 0; k < K; ++k) row[k] = moved[k];
    }
  __syncthreads();
  spread_rows(products, begin, end, from_left + at * K, from_right + at * K, entering, leaving);
}

// What a run of pieces does to a row: the product of their matrices. runs (n + 1,): where they
// begin.
extern "C" __global__ void __launch_bounds__(64)
    join_pieces(const double* products, const int* runs, int n, double* joined) {
  const int run = (int)thread_of_grid();
  if (run >= n) return;
  double product[K * K], next[K * K];
  set_identity(product);
  for (int c = runs[run]; c < runs[run + 1]; ++c) {
    multiply(product, products + (size_t)c * K * K, next);
    UNROLL for (int i = 0; i < K * K; ++i) product[i] = next[i];
  }
  UNROLL for (int i = 0; i < K * K; ++i) joined[(size_t)run * K * K + i] = product[i];
}

// The rows that enter each piece from the left and from the right, from those that enter its run.
extern "C" __global__ void __launch_bounds__(64)
    enter_pieces(const double* products, const int* runs, int n, const double* run_entering,
                 const double* run_leaving, double* entering, double* leaving) {
  const int run = (int)thread_of_grid();
  if (run >= n) return;
  spread_rows(products, runs[run], runs[run + 1], run_entering + (size_t)run * K,
              run_leaving + (size_t)run * K, entering, leaving);
}

// Messages of mixing rates from the right: that at the beginning of a piece is x * (that at its
// end) + y. ahead and back (n,): what a piece does to messages from the left and from the right.
extern "C" __global__ void __launch_bounds__(128)
    pass_messages(const double* scores, const double* factors, PIECES, const double* leaving,
                  const float2* messages, float2* ahead, float2* back) {
  const Pieces pieces AS_PIECES;
  const i64 c = thread_of_grid();
  if (c >= n) return;
  double E[K * K], beta[K], after[K];
  UNROLL for (int i = 0; i < K * K; ++i) E[i] = factors[i];
  load_row(leaving, c, beta);
  int row = first[c] + STEP * (length[c] - 1);
  ahead[c] = messages[row];
  float2 message = make_float2(1.0f, 0.0f);
  for (int t = length[c] - 1; t >= (pieces.continues(c) ? 0 : 1); --t, row -= STEP) {
    double u[K], f[K];
    load_row(scores, row, u);
    exponentiate(u, f);
    UNROLL for (int k = 0; k < K; ++k) after[k] = f[k] * beta[k];
    normalize(after);
    times_column(E, after, beta);
    float rate;
    MIXING_RATE(rate, after, beta, E[j * K + i])
    message = make_float2(rate * message.x, rate * (1.0f + message.y));
  }
  back[c] = message;
}

__device__ __forceinline__ float2 compose(float2 first, float2 then) {
  return make_float2(then.x * first.x, then.x * first.y + then.y);
}

// The messages that reach each piece from either side, (n,).
extern "C" __global__ void __launch_bounds__(SCAN_THREADS)
    scan_messages(const float2* ahead, const float2* back, const int* starts, float* from_left,
                  float* from_right) {
  __shared__ float2 of_left[SCAN_THREADS], of_right[SCAN_THREADS];
  __shared__ float left[SCAN_THREADS], right[SCAN_THREADS];
  const int start = starts[blockIdx.x], n = starts[blockIdx.x + 1] - start, at = threadIdx.x;
  const int begin = start + (int)((i64)n * at / SCAN_THREADS),
            end = start + (int)((i64)n * (at + 1) / SCAN_THREADS);
  float2 going = make_float2(1.0f, 0.0f), coming = make_float2(1.0f, 0.0f);
  for (int c = begin; c < end; ++c) going = compose(going, ahead[c]);
  for (int c = end - 1; c >= begin; --c) coming = compose(coming, back[c]);
  of_left[at] = going;
  of_right[at] = coming;
  __syncthreads();
  float x = 0.0f;
  if (at == 0)
    for (int i = 0; i < SCAN_THREADS; ++i) {
      left[i] = x;
      x = of_left[i].x * x + of_left[i].y;
    }
  if (at == 32)
    for (int i = SCAN_THREADS - 1; i >= 0; --i) {
      right[i] = x;
      x = of_right[i].x * x + of_right[i].y;
    }
  __syncthreads();
  x = left[at];
  for (int c = begin; c < end; ++c) {
    from_left[c] = x;
    x = ahead[c].x * x + ahead[c].y;
  }
  x = right[at];
  for (int c = end - 1; c >= begin; --c) {
    from_right[c] = x;
    x = back[c].x * x + back[c].y;
  }
}
