// The loops of a scaled chain in single precision, which is enough for what training learns from:
// mixing rates, and sums over pairs of labels. Rows of doubles are padded as in scaled_loops.hpp,
// rows of floats to whole vectors of floats. Numbers that no normal float holds become 0.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "simd_wide.hpp"
#include "sum_grid.hpp"
#include "trellis/scaled_loops.hpp"

namespace hedgerow {
namespace {

constexpr double kSmallestFloat = std::numeric_limits<float>::min();
// The largest factor of a pair. If the square of a factor is 0 as a float, the probability of its
// pairs is below 2^-25.
constexpr double kLargestSingle = 0x1p38;

template <class Vector>
HEDGEROW_INLINE void store_normal(float* p, Vector a) {
  store_as_floats(p, where_at_least(a, kSmallestFloat, a));
}

// Two vectors of a row as floats, positive numbers at least kSmallestFloat.
template <class Doubles>
HEDGEROW_INLINE Floats load_as_floats(const double* row, int k, int stride) {
  const auto load_at = [&]<class Vector>(int i) HEDGEROW_INLINE_LAMBDA {
    const Vector a = i < stride ? load_as<Vector>(row + i) : broadcast_to<Vector>(0.0);
    return where_positive(a, maximum(a, broadcast_to<Vector>(kSmallestFloat)));
  };
  if constexpr (sizeof(Doubles) == 2 * sizeof(Lanes))
    if (k + kFloats <= stride) return narrowed(load_at.template operator()<Doubles>(k));
  return join_as_floats(load_at.template operator()<Lanes>(k),
                        load_at.template operator()<Lanes>(k + kLanes));
}

// block(c) for every block of kVectors vectors from column c on, with the type and the number of
// the vectors as parameters: as many as hold 32 floats, then 16 and 8. Wide: the largest vectors
template <class Wide, class Block>
HEDGEROW_INLINE void for_each_block(int stride, Block block) {
  int c = 0;
  for (; c + 4 * kFloats <= stride; c += 4 * kFloats)
    block.template operator()<Wide, 4 * kFloats / kFloatsIn<Wide>>(c);
  if (c + 2 * kFloats <= stride) {
    block.template operator()<Wide, 2 * kFloats / kFloatsIn<Wide>>(c);
    c += 2 * kFloats;
  }
  if (c < stride) block.template operator()<Floats, 1>(c);
}

// out = scale x^T matrix, for x of n_rows entries; rows are divided among kParts partial sums, as
// in multiply_columns.
template <class Wide>
HEDGEROW_INLINE void multiply(const float* x, const float* matrix, int n_rows, int stride,
                              float scale, float* out) {
  for_each_block<Wide>(stride, [&]<class Vector, int kVectors>(int c) HEDGEROW_INLINE_LAMBDA {
    constexpr int kSize = kFloatsIn<Vector>, kParts = kVectors * kSize == 4 * kFloats ? 3 : 4;
    Vector sums[kParts][kVectors];
    for (auto& part : sums)
      for (Vector& sum : part) sum = broadcast_floats<Vector>(0.0f);
    const auto add_row = [&](int r, int p) HEDGEROW_INLINE_LAMBDA {
      const Vector factor = broadcast_floats<Vector>(x[r]);
      const float* row = matrix + static_cast<int64_t>(r) * stride + c;
      for (int v = 0; v < kVectors; ++v)
        sums[p][v] += factor * load_floats<Vector>(row + v * kSize);
    };
    int r = 0;
    for (; r + kParts <= n_rows; r += kParts)
      for (int p = 0; p < kParts; ++p) add_row(r + p, p);
    for (; r < n_rows; ++r) add_row(r, 0);
    for (int v = 0; v < kVectors; ++v) {
      for (int p = 1; p < kParts; ++p) sums[0][v] += sums[p][v];
      store_floats(out + c + v * kSize, sums[0][v] * broadcast_floats<Vector>(scale));
    }
  });
}

// The mixing rates 1 - sum_i min_j P(i | j) of n positions, where P(i | j) = message[i] arcs[j, i]
// inverses[j] is the probability of the label of a neighbour. The inverse of an impossible label is
// infinite, and neither infinity nor infinity * 0 = NaN is ever the minimum. Two positions are
// computed at a time, so that arcs are read once for both. arcs: (K, stride) [label, label of the
// neighbour]; messages, inverses: (n rounded up to 2, stride), messages sum to 1; rates: (n rounded
// up to 2,)
template <class Wide>
HEDGEROW_INLINE void fill_rates(int n, const float* inverses, const float* messages,
                                const float* arcs, int n_labels, int stride, float* rates) {
  for (int i = 0; i < n; i += 2, inverses += 2 * stride, messages += 2 * stride) {
    Floats overlaps[2] = {broadcast(0.0f), broadcast(0.0f)};
    for_each_block<Wide>(stride, [&]<class Vector, int kVectors>(int c) HEDGEROW_INLINE_LAMBDA {
      constexpr int kSize = kFloatsIn<Vector>;
      Vector least[2][kVectors];
      for (auto& of_position : least)
        for (Vector& fold : of_position)
          fold = broadcast_floats<Vector>(std::numeric_limits<float>::max());
      const float* row = arcs + c;
      for (int j = 0; j < n_labels; ++j, row += stride) {
        const Vector factors[2] = {broadcast_floats<Vector>(inverses[j]),
                                   broadcast_floats<Vector>(inverses[stride + j])};
        for (int v = 0; v < kVectors; ++v) {
          const Vector arc = load_floats<Vector>(row + v * kSize);
          for (int p = 0; p < 2; ++p) least[p][v] = minimum(factors[p] * arc, least[p][v]);
        }
      }
      // Eight by eight, so that sums do not depend on the size of vectors.
      for (int p = 0; p < 2; ++p)
        for (int k = 0; k < kVectors * kSize; k += kFloats)
          overlaps[p] += eight_of(least[p][k / kSize], k % kSize / kFloats) *
                         load(messages + p * stride + c + k);
    });
    for (int p = 0; p < 2; ++p)
      rates[i + p] = std::clamp(1.0f - fold_lanes<Total>(overlaps[p]), 0.0f, 1.0f);
  }
}

// The rows of some positions, (kMost, stride) each: the factors of the pairs of a position and the
// next one.
struct SingleRows {
  static constexpr int kMost = 16;  // positions at a time
  static constexpr int kKinds = 7;

  SingleRows(float* rows, int row_stride) : first(rows), stride(row_stride) {}
  static int64_t size(int stride) { return int64_t{kKinds} * (kMost + 1) * stride; }

  HEDGEROW_INLINE float* kind(int i) const { return first + int64_t{i} * (kMost + 1) * stride; }
  HEDGEROW_INLINE float* before() const { return kind(0); }    // alpha_t / n_t
  HEDGEROW_INLINE float* after() const { return kind(1); }     // v_{t+1}
  HEDGEROW_INLINE float* beta() const { return kind(2); }      // beta_t
  HEDGEROW_INLINE float* inverses() const { return kind(3); }  // 1 / beta_t
  // w before, w before^2 and after^2
  HEDGEROW_INLINE float* weighted() const { return kind(4); }
  HEDGEROW_INLINE float* squares() const { return kind(5); }
  HEDGEROW_INLINE float* after_squares() const { return kind(6); }

  // Computes the last three of row i. reach: (stride,) sum of w P over the rows, P of the labels
  // before
  template <class Wide>
  HEDGEROW_INLINE void weigh(int i, float w, float* reach) const {
    for_each_block<Wide>(stride, [&]<class Vector, int kVectors>(int c) HEDGEROW_INLINE_LAMBDA {
      const Vector weight = broadcast_floats<Vector>(w);
      for (int v = 0; v < kVectors; ++v) {
        float* reached = reach + c + v * kFloatsIn<Vector>;
        const int64_t k = int64_t{i} * stride + c + v * kFloatsIn<Vector>;
        const Vector one = load_floats<Vector>(before() + k), weighted_one = weight * one;
        const Vector other = load_floats<Vector>(after() + k);
        const Vector old = i == 0 ? broadcast_floats<Vector>(0.0f) : load_floats<Vector>(reached);
        store_floats(reached, old + weighted_one * load_floats<Vector>(beta() + k));
        store_floats(weighted() + k, weighted_one);
        store_floats(squares() + k, weighted_one * one);
        store_floats(after_squares() + k, other * other);
      }
    });
  }

  float* first;
  int stride;
};

// table += grid.round(weight * numbers), for all numbers of kVectors vectors.
template <class Vector, int kVectors>
HEDGEROW_INLINE void add_rounded(const Vector* numbers, double weight, SumGrid grid,
                                 double* table) {
  using Doubles = DoublesAs<Vector>;
  constexpr int kSize = kFloatsIn<Vector>;
  float stored[kVectors * kSize];
  for (int v = 0; v < kVectors; ++v) store_floats(stored + v * kSize, numbers[v]);
  for (int k = 0; k < kVectors * kSize; k += kSize / 2)
    store_all(table + k, load_as<Doubles>(table + k) + grid.round(broadcast_to<Doubles>(weight) *
                                                                  load_as<Doubles>(stored + k)));
}

// With the sums over n rows of outer products, of one label before j and some labels from c on:
//   sums += weight arcs * outer(before, after),
//   curvature += curved * (arcs * outer(weighted, after) - arcs^2 * outer(squares, after_squares)),
// rounded to grids. arcs: those from c on; out: tables from j and c on; curved: weight of the
// curvature
template <class Vector, int kVectors, bool kCurved>
HEDGEROW_INLINE void add_pair_block(const SingleRows& rows, int n, int64_t j, int c,
                                    const float* arcs, const PairTables& out, double curved) {
  constexpr int kSize = kFloatsIn<Vector>;
  const Vector zero = broadcast_floats<Vector>(0.0f);
  Vector plain[kVectors], linear[kVectors], square[kVectors];
  for (int v = 0; v < kVectors; ++v) plain[v] = linear[v] = square[v] = zero;
  for (int w = 0; w < n; ++w) {
    const int64_t at = int64_t{w} * rows.stride;
    const Vector factor = broadcast_floats<Vector>(rows.before()[at + j]);
    const Vector weighted = broadcast_floats<Vector>(rows.weighted()[at + j]);
    const Vector squared = broadcast_floats<Vector>(rows.squares()[at + j]);
    for (int v = 0; v < kVectors; ++v) {
      const Vector after = load_floats<Vector>(rows.after() + at + c + v * kSize);
      plain[v] += factor * after;
      if constexpr (kCurved) {
        linear[v] += weighted * after;
        square[v] += squared * load_floats<Vector>(rows.after_squares() + at + c + v * kSize);
      }
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    const Vector arc = load_floats<Vector>(arcs + v * kSize);
    linear[v] = maximum(arc * (linear[v] - arc * square[v]), zero);
    plain[v] = arc * plain[v];
  }
  if (out.sums != nullptr) add_rounded<Vector, kVectors>(plain, out.weight, out.sum_grid, out.sums);
  if constexpr (kCurved)
    add_rounded<Vector, kVectors>(linear, curved, out.curvature_grid, out.curvature);
}

// curvature += weight gamma P (1 - P) for P = before * arcs * after, all rows of the same label
// before; for the nearly certain `label`, where 1 - P would lose digits, `others` is used instead.
// arcs, after, curvature: (stride,)
HEDGEROW_INLINE void add_likely_row(float before, const float* arcs, const float* after,
                                    float gamma, double weight, int stride, int64_t label,
                                    double others, const SumGrid& grid, double* curvature) {
  const double prob = double{before} * arcs[label] * after[label];
  const double known = curvature[label] + grid.round(weight * gamma * prob * others);
  for (int c = 0; c < stride; c += kFloats) {
    const Floats probs = broadcast(before) * load(arcs + c) * load(after + c);
    const Floats found = broadcast(gamma) * probs * (broadcast(1.0f) - probs);
    add_rounded<Floats, 1>(&found, weight, grid, curvature + c);
  }
  curvature[label] = known;
}

}  // namespace
}  // namespace hedgerow
