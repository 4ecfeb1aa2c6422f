// The loops of a scaled chain in single precision, which is enough for bounds on the curvature:
// mixing rates, and sums over pairs of labels. Rows of doubles are padded as in scaled_loops.hpp,
// rows of floats to whole vectors of floats.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "simd_float.hpp"
#include "sum_grid.hpp"
#include "trellis/scaled_loops.hpp"

namespace hedgerow {
namespace {

constexpr int kCurvedRows = 16;  // outer products added at a time
// The largest entry of their rows. If the square of an entry underflows, the probability of its
// pairs is below 2^-33.
constexpr double kLargestSingle = 0x1p30;

// least[c] = min_r x[r] * matrix[r, c] over kVectors * kFloats columns, products that are NaN not
// counted.
template <int kVectors>
HEDGEROW_INLINE void fill_least_columns(const float* x, const float* matrix, int n_rows, int stride,
                                        float* least) {
  Floats folds[kVectors];
  for (int v = 0; v < kVectors; ++v) folds[v] = Smallest::start();
  for (int r = 0; r < n_rows; ++r, matrix += stride) {
    const Floats factor = broadcast(x[r]);
    for (int v = 0; v < kVectors; ++v)
      folds[v] = Smallest::add(factor * load(matrix + v * kFloats), folds[v]);
  }
  for (int v = 0; v < kVectors; ++v) store(least + v * kFloats, folds[v]);
}
HEDGEROW_INLINE void fill_least(const float* x, const float* matrix, int n_rows, int stride,
                                float* least) {
  for (int c = 0; c < stride; c += 4 * kFloats) {
    switch (std::min(4, (stride - c) / kFloats)) {
      case 1: fill_least_columns<1>(x, matrix + c, n_rows, stride, least + c); break;
      case 2: fill_least_columns<2>(x, matrix + c, n_rows, stride, least + c); break;
      case 3: fill_least_columns<3>(x, matrix + c, n_rows, stride, least + c); break;
      default: fill_least_columns<4>(x, matrix + c, n_rows, stride, least + c); break;
    }
  }
}

// Arcs between the labels of two neighbours, (K, floats) [label, label of the neighbour].
struct SingleArcs {
  const float* data;
  int n_labels, stride;
};

// The mixing rate 1 - sum_i min_j P(i | j), where P(i | j) = message[i] arcs[j, i] / sums[j] is the
// probability of the label of a neighbour; times scale, sums are at most 1 and message sums to 1.
// A label j is impossible if its factor or sum is 0: then 1 / sum is infinite, and neither infinity
// nor infinity * 0 = NaN is ever the minimum. Returns -1 if a sum is too small for a float.
// scratch: (2, arcs.stride)
HEDGEROW_INLINE float mixing_rate(const double* factors, const double* sums, const double* message,
                                  double scale, const SingleArcs& arcs, float* scratch) {
  const int stride = padded(arcs.n_labels);
  float* least = scratch + arcs.stride;
  Lanes smallest = broadcast(1.0);
  for (int k = 0; k < stride; k += kLanes) {
    const Lanes sum = where_positive(load(factors + k), load(sums + k) * broadcast(scale));
    smallest = minimum(one_if_zero(sum), smallest);
    store_inverses_as_floats(scratch + k, sum);
  }
  if (min_lane(smallest) < std::numeric_limits<float>::min()) return -1.0f;
  fill_least(scratch, arcs.data, arcs.n_labels, arcs.stride, least);
  Lanes overlaps[2] = {broadcast(0.0), broadcast(0.0)};
  int k = 0;
  for (; k + kFloats <= stride; k += kFloats)
    for (int i = 0; i < 2; ++i)
      overlaps[i] += load_from_floats(least + k + i * kLanes) * load(message + k + i * kLanes);
  if (k < stride) overlaps[0] += load_from_floats(least + k) * load(message + k);
  const double rate = 1.0 - scale * sum_lanes(overlaps[0] + overlaps[1]);
  return static_cast<float>(min_of(max_of(rate, 0.0), 1.0));
}

// Rows of outer products that are still to be added, (kCurvedRows, stride) each: of w before and
// after, and of w before^2 and after^2.
struct CurvedRows {
  // row_stride: of floats; row_reach: (stride,) scratch
  CurvedRows(float* rows, int row_stride, double* row_reach)
      : left(rows),
        right(left + kCurvedRows * int64_t{row_stride}),
        left_squares(right + kCurvedRows * int64_t{row_stride}),
        right_squares(left_squares + kCurvedRows * int64_t{row_stride}),
        reach(row_reach),
        stride(row_stride) {}

  // Adds a row. before, after, marginals of the labels before: padded doubles
  HEDGEROW_INLINE void add(const double* before, const double* after, const double* marginals,
                           double w, int n_labels) {
    const int64_t row = int64_t{n_rows} * stride;
    const Lanes weight = broadcast(w);
    for (int k = 0; k < n_labels; k += kLanes) {
      const Lanes one = load(before + k), other = load(after + k), weighted = weight * one;
      store_as_floats(left + row + k, weighted);
      store_as_floats(right + row + k, other);
      store_as_floats(left_squares + row + k, weighted * one);
      store_as_floats(right_squares + row + k, other * other);
      const Lanes reached = weight * load(marginals + k);
      store(reach + k, n_rows == 0 ? reached : load(reach + k) + reached);
    }
    ++n_rows;
  }

  float *left, *right, *left_squares, *right_squares;
  double* reach;  // (stride,) sum of w P over the rows, P of the labels before
  int stride, n_rows = 0;
};

// curvature += arcs * linear - arcs^2 * square, rounded to a grid, where linear and square are the
// sums of the outer products, for one label before and kVectors * kFloats labels. left, right,
// arcs, curvature: where these begin in their rows; n_columns: those of curvature from there on
template <int kVectors>
HEDGEROW_INLINE void add_curved_block(const CurvedRows& rows, int64_t left, int64_t right,
                                      const float* arcs, int n_columns, SumGrid grid,
                                      double* HEDGEROW_RESTRICT curvature) {
  Floats linear[kVectors], square[kVectors];
  for (int v = 0; v < kVectors; ++v) linear[v] = square[v] = broadcast(0.0f);
  const int64_t size = int64_t{rows.n_rows} * rows.stride;
  for (int64_t w = 0; w < size; w += rows.stride) {
    const Floats factor = broadcast(rows.left[w + left]);
    const Floats factor_square = broadcast(rows.left_squares[w + left]);
    for (int v = 0; v < kVectors; ++v) {
      linear[v] += factor * load(rows.right + w + right + v * kFloats);
      square[v] += factor_square * load(rows.right_squares + w + right + v * kFloats);
    }
  }
  float sums[kVectors * kFloats];
  for (int v = 0; v < kVectors; ++v) {
    const Floats arc = load(arcs + v * kFloats);
    store(sums + v * kFloats, maximum(arc * (linear[v] - arc * square[v]), broadcast(0.0f)));
  }
  for (int k = 0; k < std::min(n_columns, kVectors * kFloats); k += kLanes)
    store(curvature + k, load(curvature + k) + grid.round(load_from_floats(sums + k)));
}

// The same for all pairs; without those that are rounded to 0 as their label before is too
// unlikely. curvature: (stride, stride)
HEDGEROW_INLINE void add_curved(const CurvedRows& rows, const SingleArcs& arcs, int stride,
                                SumGrid grid, double* curvature) {
  const double least = 0.499 * grid.unit();
  for (int64_t j = 0; j < arcs.n_labels; ++j, curvature += stride) {
    if (rows.reach[j] < least) continue;
    for (int c = 0; c < stride; c += 4 * kFloats) {
      const float* row = arcs.data + j * arcs.stride + c;
      switch (std::min(4, (arcs.stride - c) / kFloats)) {
        case 1: add_curved_block<1>(rows, j, c, row, stride - c, grid, curvature + c); break;
        case 2: add_curved_block<2>(rows, j, c, row, stride - c, grid, curvature + c); break;
        case 3: add_curved_block<3>(rows, j, c, row, stride - c, grid, curvature + c); break;
        default: add_curved_block<4>(rows, j, c, row, stride - c, grid, curvature + c); break;
      }
    }
  }
}

// curvature += w P (1 - P) for P = before * arcs * after, all rows of the same label before; for
// the nearly certain `label`, where 1 - P would lose digits, that is `others`.
HEDGEROW_INLINE void add_likely_row(double before, const double* arcs, const double* after,
                                    double w, int stride, int64_t label, double others,
                                    const SumGrid& grid, double* curvature) {
  const double prob = before * arcs[label] * after[label];
  const double known = curvature[label] + grid.round(w * prob * others);
  for (int k = 0; k < stride; k += kLanes) {
    const Lanes probs = broadcast(before) * load(arcs + k) * load(after + k);
    store(curvature + k,
          load(curvature + k) + grid.round(broadcast(w) * probs * (broadcast(1.0) - probs)));
  }
  curvature[label] = known;
}

}  // namespace
}  // namespace hedgerow
