// Mixing rates of a node and its parent, the shares of a change that one passes on to the other,
// first order: see tree_graph_mixing.hpp.
//
// Impossible labels do not count: those of the parent have outside * message = 0, those of the node
// reach * belief = 0.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "simd.hpp"

namespace hedgerow {
namespace {

// Rows of `stride` numbers, of one node or of consecutive nodes.
struct RateRows {
  const double *outside, *message, *belief, *reach;
};

// out[r, j] = min_i x[r, i] matrix[i, j], ignoring products that are NaN, for kVectors vectors of
// columns j.
template <int kRows, int kVectors>
HEDGEROW_INLINE void fill_least_of(const double* x, const double* matrix, int n, int stride,
                                   double* out) {
  Lanes least[kRows][kVectors];
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v) least[r][v] = broadcast(kInfinity);
  for (int i = 0; i < n; ++i, matrix += stride) {
    Lanes row[kVectors];
    for (int v = 0; v < kVectors; ++v) row[v] = load(matrix + v * kLanes);
    for (int r = 0; r < kRows; ++r) {
      const Lanes from = broadcast(x[r * stride + i]);
      for (int v = 0; v < kVectors; ++v) least[r][v] = minimum(from * row[v], least[r][v]);
    }
  }
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v) store(out + r * stride + v * kLanes, least[r][v]);
}

// rates[r] = 1 - sum_j min_i P(j | i) over the possible i, with P(j | i) = matrix[i, j] to[r, j] /
// sums[r, i]; i is possible where from[r, i] sums[r, i] > 0. scratch: (2 kRows, stride)
template <int kRows>
HEDGEROW_INLINE void measure_rate_rows(const double* from, const double* sums, const double* to,
                                       const double* matrix, int n_labels, int stride,
                                       double* scratch, double* rates) {
  double *per_sum = scratch, *least = scratch + kRows * stride;
  // Neither infinity nor infinity * 0 = NaN is ever the minimum.
  for (int k = 0; k < kRows * stride; k += kLanes)
    store(per_sum + k, if_positive(load(from + k) * load(sums + k), broadcast(1.0) / load(sums + k),
                                   broadcast(kInfinity)));
  int j = 0;
  for (; j + 2 * kLanes <= stride; j += 2 * kLanes)
    fill_least_of<kRows, 2>(per_sum, matrix + j, n_labels, stride, least + j);
  if (j < stride) fill_least_of<kRows, 1>(per_sum, matrix + j, n_labels, stride, least + j);
  for (int r = 0; r < kRows; ++r) {
    Lanes overlap = broadcast(0.0);
    for (int k = r * stride; k < (r + 1) * stride; k += kLanes)
      overlap += where_positive(load(to + k), load(to + k) * load(least + k));
    rates[r] = std::clamp(1.0 - sum_lanes(overlap), 0.0, 1.0);
  }
}

// The rates of kRows nodes with the same weights, in both directions.
template <int kRows>
HEDGEROW_INLINE void measure_both_rates(const RateRows& rows, int64_t first, const double* weights,
                                        const double* transposed, int n_labels, int stride,
                                        double* scratch, double* down, double* up) {
  const int64_t at = first * stride;
  measure_rate_rows<kRows>(rows.outside + at, rows.message + at, rows.belief + at, weights,
                           n_labels, stride, scratch, down + first);
  measure_rate_rows<kRows>(rows.belief + at, rows.reach + at, rows.outside + at, transposed,
                           n_labels, stride, scratch, up + first);
}
// The same for n nodes. weights, transposed: (K, stride); scratch: eight rows
HEDGEROW_CLONES
void measure_rates(const RateRows& rows, int64_t n, const double* weights, const double* transposed,
                   int n_labels, int stride, double* scratch, double* down, double* up) {
  int64_t r = 0;
  for (; r + 4 <= n; r += 4)
    measure_both_rates<4>(rows, r, weights, transposed, n_labels, stride, scratch, down, up);
  for (; r < n; ++r)
    measure_both_rates<1>(rows, r, weights, transposed, n_labels, stride, scratch, down, up);
}

// The same for a node with its own weights, (K, stride), which are read once. scratch: three rows
HEDGEROW_CLONES
void measure_edge_rates(const RateRows& rows, const double* weights, int n_labels, int stride,
                        double* scratch, double* down, double* up) {
  constexpr double kLarge = 1e300;
  double *smallest = scratch, *inverse = smallest + stride, *penalty = inverse + stride;
  for (int k = 0; k < stride; ++k) {
    const bool possible = rows.reach[k] * rows.belief[k] > 0.0;
    smallest[k] = kLarge;
    inverse[k] = possible ? 1.0 / rows.reach[k] : 0.0;
    penalty[k] = possible ? 0.0 : kLarge;
  }
  double up_overlap = 0.0, down_overlap = 0.0;
  for (int i = 0; i < n_labels; ++i) {
    if (!(rows.outside[i] * rows.message[i] > 0.0)) continue;
    const double* row = weights + static_cast<int64_t>(i) * stride;
    const Lanes per_message = broadcast(1.0 / rows.message[i]);
    Lanes least = broadcast(kLarge);
    for (int k = 0; k < stride; k += kLanes) {
      const Lanes weight = load(row + k);
      store(smallest + k, minimum(weight * per_message, load(smallest + k)));
      least = minimum(weight * load(inverse + k) + load(penalty + k), least);
    }
    up_overlap += rows.outside[i] * min_lane(least);
  }
  for (int k = 0; k < n_labels; ++k)
    if (rows.belief[k] > 0.0) down_overlap += rows.belief[k] * smallest[k];
  *down = std::clamp(1.0 - down_overlap, 0.0, 1.0);
  *up = std::clamp(1.0 - up_overlap, 0.0, 1.0);
}

// The same for logarithms.
void measure_log_rates(const RateRows& rows, const double* weights, int n_labels, int stride,
                       double* down, double* up) {
  const auto overlap = [&](auto is_given, auto is_possible, auto prob) {
    double sum = 0.0;
    for (int j = 0; j < n_labels; ++j) {
      double least = 1.0;
      for (int i = 0; i < n_labels; ++i)
        if (is_given(i)) least = min_of(prob(i, j), least);
      if (is_possible(j)) sum += least;
    }
    return std::clamp(1.0 - sum, 0.0, 1.0);
  };
  const auto of_parent = [&](int i) { return rows.outside[i] + rows.message[i] > -kInfinity; };
  const auto of_node = [&](int k) { return rows.reach[k] + rows.belief[k] > -kInfinity; };
  const auto weight = [&](int i, int k) { return weights[static_cast<int64_t>(i) * stride + k]; };
  *down = overlap(of_parent, of_node, [&](int i, int k) {
    return std::exp(weight(i, k) + rows.belief[k] - rows.message[i]);
  });
  *up = overlap(of_node, of_parent, [&](int k, int i) {
    return std::exp(rows.outside[i] + weight(i, k) - rows.reach[k]);
  });
}

}  // namespace
}  // namespace hedgerow
