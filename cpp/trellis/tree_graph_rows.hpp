// Rows of numbers of tree-shaped graphs, one number per state, and what "add" and "multiply" mean
// for them. Inlined into the kernels.
//
// Scaled numbers are probabilities up to a factor per row. They have full relative precision, or
// the sequence is refused and computed in Logs: every number that is kept is 0 because no labelling
// leads there, or within bounds that keep the product of any two within the range of a double:
//   factors of nodes are in [1e-140, 1], weights of arcs in [1e-50, 1], and rows of beliefs in
//   [1e-100, 1e40]; so messages, sums of weight * belief, are at least 1e-150.
// A row is divided by its largest number where some number is not in [1e-60, 1e40], or where a
// logarithm is large enough to lose digits. Whether it is divided depends only on the row.
#pragma once

#include <cmath>
#include <cstdint>

#include "simd.hpp"

namespace hedgerow {

inline constexpr double kLeastFactor = -322.0;  // score minus the largest one: exp(-322) > 1e-140
inline constexpr double kLeastArc = 1e-50;
inline constexpr double kLeastBelief = 1e-100;
inline constexpr double kSmallEntry = 1e-60, kLargeEntry = 1e40, kLargeLog = 1e3;

// kLogs: numbers are logarithms; kSums: add is a sum over labellings, otherwise the best of them.
struct Scaled {
  static constexpr bool kLogs = false, kSums = true;
  static constexpr double kZero = 0.0, kOne = 1.0;
};
struct Logs {
  static constexpr bool kLogs = true, kSums = true;
  static constexpr double kZero = -kInfinity, kOne = 0.0;
};
struct Best {
  static constexpr bool kLogs = true, kSums = false;
  static constexpr double kZero = -kInfinity, kOne = 0.0;
};

namespace {

template <class Algebra>
HEDGEROW_INLINE auto product(auto a, auto b) {
  if constexpr (Algebra::kLogs)
    return a + b;
  else
    return a * b;
}

// a b / c as a probability, 0 where c is zero.
template <class Algebra>
HEDGEROW_INLINE double share(double a, double b, double c) {
  if (c == Algebra::kZero) return 0.0;
  if constexpr (Algebra::kLogs)
    return std::exp(a + b - c);
  else
    return a * b / c;
}

// Divides a row by its largest number; zeros stay. lost: set if a number becomes too small
template <class Algebra>
HEDGEROW_INLINE void scale_row_by(double* row, double largest, int stride, bool& lost) {
  if constexpr (Algebra::kLogs) {
    for (int i = 0; i < stride; i += kLanes) store(row + i, load(row + i) - broadcast(largest));
  } else {
    const Lanes inverse = broadcast(1.0 / largest);
    Lanes smallest = broadcast(1.0);
    for (int i = 0; i < stride; i += kLanes) {
      const Lanes scaled = load(row + i) * inverse;
      store(row + i, scaled);
      smallest = minimum(one_if_zero(scaled), smallest);
    }
    lost |= !(min_lane(smallest) >= kLeastBelief);
  }
}

HEDGEROW_INLINE void copy_row(const double* row, int stride, double* out) {
  for (int i = 0; i < stride; i += kLanes) store(out + i, load(row + i));
}

// out = a b, scaled where that is needed. Returns what it was divided by, kZero if all are zeros.
template <class Algebra>
HEDGEROW_INLINE double multiply_rows_to(const double* a, const double* b, int stride, double* out,
                                        bool& lost) {
  Lanes largest = broadcast(-kInfinity), smallest = broadcast(1.0);
  for (int i = 0; i < stride; i += kLanes) {
    const Lanes entries = product<Algebra>(load(a + i), load(b + i));
    store(out + i, entries);
    largest = maximum(entries, largest);
    if constexpr (!Algebra::kLogs) smallest = minimum(one_if_zero(entries), smallest);
  }
  const double top = max_lane(largest);
  if (!(top > Algebra::kZero)) return Algebra::kZero;
  if constexpr (Algebra::kLogs) {
    if (std::fabs(top) <= kLargeLog) return Algebra::kOne;
  } else {
    if (top <= kLargeEntry && min_lane(smallest) >= kSmallEntry) return Algebra::kOne;
  }
  scale_row_by<Algebra>(out, top, stride, lost);
  return top;
}

// The sum of the products of two rows, entry by entry.
template <class Algebra>
HEDGEROW_INLINE double dot_rows(const double* a, const double* b, int stride) {
  if constexpr (!Algebra::kLogs) {
    Lanes sums = broadcast(0.0);
    for (int i = 0; i < stride; i += kLanes) sums += load(a + i) * load(b + i);
    return sum_lanes(sums);
  } else {
    Lanes largest = broadcast(-kInfinity);
    for (int i = 0; i < stride; i += kLanes) largest = maximum(load(a + i) + load(b + i), largest);
    const double top = max_lane(largest);
    if (!Algebra::kSums || top == -kInfinity) return top;
    Lanes sums = broadcast(0.0);
    for (int i = 0; i < stride; i += kLanes)
      sums += exp_nonpositive(load(a + i) + load(b + i) - broadcast(top));
    return top + std::log(sum_lanes(sums));
  }
}

HEDGEROW_INLINE double sum_range(const double* begin, const double* end) {
  Lanes sums = broadcast(0.0);
  for (; begin + kLanes <= end; begin += kLanes) sums += load(begin);
  double sum = sum_lanes(sums);
  for (; begin < end; ++begin) sum += *begin;
  return sum;
}

// out[r, j] = sum_i x[r, i] matrix[i, j] for kVectors vectors of columns j.
template <class Algebra, int kRows, int kVectors>
HEDGEROW_INLINE void send_columns(const double* x, int64_t x_stride, const double* matrix, int n,
                                  int stride, double* out, int64_t out_stride) {
  Lanes sums[kRows][kVectors];
  constexpr bool sums_products = !Algebra::kLogs;
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v) sums[r][v] = broadcast(sums_products ? 0.0 : -kInfinity);
  for (int i = 0; i < n; ++i) {
    Lanes row[kVectors];
    for (int v = 0; v < kVectors; ++v)
      row[v] = load(matrix + static_cast<int64_t>(i) * stride + v * kLanes);
    for (int r = 0; r < kRows; ++r) {
      const Lanes from = broadcast(x[r * x_stride + i]);
      for (int v = 0; v < kVectors; ++v)
        if constexpr (sums_products)
          sums[r][v] += from * row[v];
        else
          sums[r][v] = maximum(from + row[v], sums[r][v]);
    }
  }
  if constexpr (Algebra::kLogs && Algebra::kSums)
    for (int r = 0; r < kRows; ++r)
      for (int v = 0; v < kVectors; ++v) {
        const Lanes top = replace_minus_infinity(sums[r][v], broadcast(0.0));
        Lanes terms = broadcast(0.0);
        for (int i = 0; i < n; ++i)
          terms += exp_nonpositive(broadcast(x[r * x_stride + i]) - top +
                                   load(matrix + static_cast<int64_t>(i) * stride + v * kLanes));
        double logs[kLanes];
        for (int l = 0; l < kLanes; ++l) logs[l] = std::log(lane(terms, l));
        sums[r][v] = top + load(logs);
      }
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v) store(out + r * out_stride + v * kLanes, sums[r][v]);
}

// out[r, j] = sum_i x[r, i] matrix[i, j] for kRows rows of x, each of n numbers; rows of the matrix
// and of out are padded to `stride`.
template <class Algebra, int kRows>
HEDGEROW_INLINE void send_rows(const double* x, int64_t x_stride, const double* matrix, int n,
                               int stride, double* out, int64_t out_stride) {
  int j = 0;
  for (; j + 2 * kLanes <= stride; j += 2 * kLanes)
    send_columns<Algebra, kRows, 2>(x, x_stride, matrix + j, n, stride, out + j, out_stride);
  if (j < stride)
    send_columns<Algebra, kRows, 1>(x, x_stride, matrix + j, n, stride, out + j, out_stride);
}

// The same for any number of rows.
template <class Algebra>
HEDGEROW_INLINE void send_all_rows(const double* x, int64_t n_rows, int64_t x_stride,
                                   const double* matrix, int n, int stride, double* out,
                                   int64_t out_stride) {
  int64_t r = 0;
  for (; r + 4 <= n_rows; r += 4)
    send_rows<Algebra, 4>(x + r * x_stride, x_stride, matrix, n, stride, out + r * out_stride,
                          out_stride);
  for (; r < n_rows; ++r)
    send_rows<Algebra, 1>(x + r * x_stride, x_stride, matrix, n, stride, out + r * out_stride,
                          out_stride);
}

// factors[k] = exp(nodes[k] - maximum), padded with zeros; returns the maximum. bad: set if a score
// is NaN or +inf; lost: set if a factor becomes too small. inner: see Row
template <class Algebra>
HEDGEROW_INLINE double fill_node_factors(const double* nodes, const Row& row, bool inner,
                                         double* factors, bool& bad, bool& lost) {
  const int stride = padded(row.size);
  Lanes largest = broadcast(-kInfinity), n_bad = broadcast(0.0);
  for (int k = 0; k < stride; k += kLanes) {
    const Lanes scores = k < row.whole ? load(nodes + k) : row.load_rest(nodes, inner, -kInfinity);
    store(factors + k, scores);
    largest = maximum(scores, largest);
    n_bad += one_if_bad(scores);
  }
  bad |= sum_lanes(n_bad) > 0.0;
  const double top = max_lane(largest);
  if (!(top > -kInfinity)) {
    for (int k = 0; k < stride; k += kLanes) store(factors + k, broadcast(Algebra::kZero));
    return top;
  }
  if constexpr (Algebra::kLogs) {
    for (int k = 0; k < stride; k += kLanes) store(factors + k, load(factors + k) - broadcast(top));
  } else {
    Lanes smallest = broadcast(0.0);
    for (int k = 0; k < stride; k += kLanes) {
      const Lanes scores = load(factors + k) - broadcast(top);
      store(factors + k, exp_nonpositive(scores));
      smallest = minimum(replace_minus_infinity(scores, broadcast(0.0)), smallest);
    }
    lost |= min_lane(smallest) < kLeastFactor;
  }
  return top;
}

}  // namespace
}  // namespace hedgerow
