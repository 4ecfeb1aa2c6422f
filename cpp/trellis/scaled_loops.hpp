// The loops over rows of a scaled chain, inlined into the kernels that are compiled for several
// x86-64 levels. Rows are padded to whole vectors with zeros.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "simd.hpp"
#include "simd_wide.hpp"
#include "sum_grid.hpp"
#include "trellis/scaled.hpp"

namespace hedgerow {
namespace {

constexpr int kWaitingRows = 8;             // outer products added at a time
constexpr int64_t kBlockNumbers = 1 << 11;  // factors computed at a time: they stay in the cache

// Number of positions whose factors are computed at a time, a power of two.
inline int64_t block_rows(int stride) {
  return std::max<int64_t>(16, std::bit_floor<uint64_t>(kBlockNumbers / stride));
}

// out[c] = sum_r x[r] * matrix[r, c] over kVectors * kLanes columns, with Wide vectors as far as
// possible. If there are few columns, the rows are divided among kParts partial sums, so that
// consecutive additions do not depend on each other.
template <class Wide, int kVectors, int kParts, class Number>
HEDGEROW_INLINE void multiply_columns(const double* x, const Number* matrix, int n_rows, int stride,
                                      double* out) {
  constexpr int kSize = sizeof(Wide) / sizeof(double), kWide = kVectors * kLanes / kSize;
  constexpr int kRest = kVectors - kWide * kSize / kLanes;
  Wide sums[kParts][kWide + 1];
  Lanes rest[kParts];
  for (int p = 0; p < kParts; ++p) {
    for (int v = 0; v < kWide; ++v) sums[p][v] = broadcast_to<Wide>(0.0);
    rest[p] = broadcast(0.0);
  }
  const auto add_row = [&](int r, int p) HEDGEROW_INLINE_LAMBDA {
    const Wide factor = broadcast_to<Wide>(x[r]);
    const Number* row = matrix + static_cast<int64_t>(r) * stride;
    for (int v = 0; v < kWide; ++v) sums[p][v] += factor * load_as<Wide>(row + v * kSize);
    if constexpr (kRest > 0) rest[p] += broadcast(x[r]) * load_as<Lanes>(row + kWide * kSize);
  };
  int r = 0;
  for (; r + kParts <= n_rows; r += kParts)
    for (int p = 0; p < kParts; ++p) add_row(r + p, p);
  for (; r < n_rows; ++r) add_row(r, 0);
  for (int p = 1; p < kParts; ++p) {
    for (int v = 0; v < kWide; ++v) sums[0][v] += sums[p][v];
    rest[0] += rest[p];
  }
  for (int v = 0; v < kWide; ++v) store_all(out + v * kSize, sums[0][v]);
  if constexpr (kRest > 0) store(out + kWide * kSize, rest[0]);
}

// out = x^T matrix, for x of n_rows entries and n_columns columns, a multiple of kLanes.
template <class Wide = Lanes, class Number>
HEDGEROW_INLINE void multiply(const double* x, const Number* matrix, int n_rows, int stride,
                              int n_columns, double* out) {
  for (int c = 0; c < n_columns; c += 8 * kLanes) {
    const Number* columns = matrix + c;
    const auto fill = [&]<int kVectors, int kParts>() HEDGEROW_INLINE_LAMBDA {
      multiply_columns<Wide, kVectors, kParts>(x, columns, n_rows, stride, out + c);
    };
    switch (std::min(8, (n_columns - c) / kLanes)) {
      case 1: fill.template operator()<1, 4>(); break;
      case 2: fill.template operator()<2, 4>(); break;
      case 3: fill.template operator()<3, 4>(); break;
      case 4: fill.template operator()<4, 3>(); break;
      case 5: fill.template operator()<5, 2>(); break;
      case 6: fill.template operator()<6, 2>(); break;
      case 7: fill.template operator()<7, 2>(); break;
      default: fill.template operator()<8, 1>(); break;
    }
  }
}
template <class Wide = Lanes>
HEDGEROW_INLINE void multiply(const double* x, const double* matrix, int n_rows, int stride,
                              double* out) {
  multiply<Wide>(x, matrix, n_rows, stride, stride, out);
}

// out[r] = sum_c matrix[r, c] * x[c], for a matrix (stride, stride) with zeros in its padding.
HEDGEROW_INLINE void multiply_by_rows(const double* matrix, const double* x, int stride,
                                      double* out) {
  for (int r = 0; r < stride; r += kLanes) {
    const double* rows = matrix + static_cast<int64_t>(r) * stride;
    Lanes sums[kLanes];
    for (int i = 0; i < kLanes; ++i) sums[i] = broadcast(0.0);
    for (int c = 0; c < stride; c += kLanes) {
      const Lanes factors = load(x + c);
      for (int i = 0; i < kLanes; ++i)
        sums[i] += factors * load(rows + static_cast<int64_t>(i) * stride + c);
    }
    store(out + r, sum_each(sums[0], sums[1], sums[2], sums[3]));
  }
}

// out[c] = sum_r x[r] * matrix[r, c] and also[c] = sum_r y[r] * matrix[r, c], the matrix read once.
template <int kVectors, int kParts>
HEDGEROW_INLINE void multiply_two_columns(const double* x, const double* y, const double* matrix,
                                          int n_rows, int stride, double* out, double* also) {
  Lanes sums[kParts][2][kVectors];
  for (int p = 0; p < kParts; ++p)
    for (int v = 0; v < kVectors; ++v) sums[p][0][v] = sums[p][1][v] = broadcast(0.0);
  const auto add_row = [&](int r, int p) {
    const Lanes first = broadcast(x[r]), second = broadcast(y[r]);
    const double* row = matrix + static_cast<int64_t>(r) * stride;
    for (int v = 0; v < kVectors; ++v) {
      const Lanes entries = load(row + v * kLanes);
      sums[p][0][v] += first * entries;
      sums[p][1][v] += second * entries;
    }
  };
  int r = 0;
  for (; r + kParts <= n_rows; r += kParts)
    for (int p = 0; p < kParts; ++p) add_row(r + p, p);
  for (; r < n_rows; ++r) add_row(r, 0);
  for (int v = 0; v < kVectors; ++v) {
    Lanes totals[2] = {sums[0][0][v], sums[0][1][v]};
    for (int p = 1; p < kParts; ++p)
      for (int i = 0; i < 2; ++i) totals[i] += sums[p][i][v];
    store(out + v * kLanes, totals[0]);
    store(also + v * kLanes, totals[1]);
  }
}

// out = x^T matrix and also = y^T matrix.
HEDGEROW_INLINE void multiply_two(const double* x, const double* y, const double* matrix,
                                  int n_rows, int stride, double* out, double* also) {
  for (int c = 0; c < stride; c += 4 * kLanes) {
    const double* columns = matrix + c;
    switch (std::min(4, (stride - c) / kLanes)) {
      case 1: multiply_two_columns<1, 4>(x, y, columns, n_rows, stride, out + c, also + c); break;
      case 2: multiply_two_columns<2, 2>(x, y, columns, n_rows, stride, out + c, also + c); break;
      case 3: multiply_two_columns<3, 2>(x, y, columns, n_rows, stride, out + c, also + c); break;
      default: multiply_two_columns<4, 1>(x, y, columns, n_rows, stride, out + c, also + c); break;
    }
  }
}

// 1 in the padding of a row's last lanes, otherwise 0: added to a row, they keep the padding from
// being the minimum.
HEDGEROW_INLINE Lanes padding_ones(int n_labels) {
  return keep_lanes(broadcast(0.0), n_labels - (padded(n_labels) - kLanes), 1.0);
}

// A matrix [r, i], entry (r, i) at data[r * from + i * to].
struct ArcTable {
  const double* data;
  int64_t from, to;
};

// Is some row[i] < kSmallest although a path leads to it? The path comes from r with before[r] > 0
// and arcs[r, i] > 0; nodes, where given, may forbid i.
inline bool lost_path(const double* row, int n_labels, const double* before, const ArcTable& arcs,
                      const double* nodes) {
  for (int i = 0; i < n_labels; ++i) {
    if (row[i] >= kSmallest || (nodes != nullptr && nodes[i] == -kInfinity)) continue;
    if (before == nullptr) return true;
    for (int r = 0; r < n_labels; ++r)
      if (before[r] > 0 && arcs.data[r * arcs.from + i * arcs.to] > 0) return true;
  }
  return false;
}

// add(place, sums) with the sum over rows w of before_w after_w^T at each place of a table (stride,
// stride), in blocks of 4 x kVectors vectors held in registers. place: of the first number of a
// vector
template <class Vector, int kVectors, class Add>
HEDGEROW_INLINE void sum_outer_block(const double* before, const double* after, int n_rows,
                                     int stride, int64_t place, Add add) {
  constexpr int kSize = sizeof(Vector) / sizeof(double);
  Vector sums[4][kVectors];
  for (int j = 0; j < 4; ++j)
    for (int v = 0; v < kVectors; ++v) sums[j][v] = broadcast_to<Vector>(0.0);
  for (int w = 0; w < n_rows; ++w)
    for (int j = 0; j < 4; ++j) {
      const Vector factor = broadcast_to<Vector>(before[w * stride + j]);
      for (int v = 0; v < kVectors; ++v)
        sums[j][v] += factor * load_as<Vector>(after + w * stride + v * kSize);
    }
  for (int j = 0; j < 4; ++j)
    for (int v = 0; v < kVectors; ++v)
      add(place + static_cast<int64_t>(j) * stride + v * kSize, sums[j][v]);
}

template <class Wide = Lanes, class Add>
HEDGEROW_INLINE void sum_outer(const double* before, const double* after, int n_rows, int stride,
                               Add add) {
  constexpr int kSize = sizeof(Wide) / sizeof(double);
  for (int j = 0; j < stride; j += 4) {
    const int64_t place = static_cast<int64_t>(j) * stride;
    int c = 0;
    const auto add_block = [&]<class Vector, int kVectors>() HEDGEROW_INLINE_LAMBDA {
      sum_outer_block<Vector, kVectors>(before + j, after + c, n_rows, stride, place + c, add);
    };
    for (; c + 2 * kSize <= stride; c += 2 * kSize) add_block.template operator()<Wide, 2>();
    for (; c + kSize <= stride; c += kSize) add_block.template operator()<Wide, 1>();
    for (; c < stride; c += kLanes) add_block.template operator()<Lanes, 1>();
  }
}

// sums += factors * sum over rows w of before_w after_w^T, rounded to a grid, which is passed by
// value, since it would otherwise be read again after every store. factors, sums: (stride, stride)
template <class Wide>
HEDGEROW_INLINE void add_outer(const double* before, const double* after, int n_rows, int stride,
                               const double* factors, SumGrid grid, double* sums) {
  const auto add = [&]<class Vector>(int64_t place, Vector outer) HEDGEROW_INLINE_LAMBDA {
    const Vector products = load_as<Vector>(factors + place) * outer;
    store_all(sums + place, load_as<Vector>(sums + place) + grid.round(products));
  };
  sum_outer<Wide>(before, after, n_rows, stride, add);
}

// pairs[j, k] = before[j] * arcs[j, k] * after[k], without padding.
HEDGEROW_INLINE void fill_pairs(const double* before, const double* arcs, const double* after,
                                int n_labels, int stride, double* pairs) {
  const Row row(n_labels);
  const int n_inner = n_labels - row.n_outer_rows();
  for (int j = 0; j < n_labels; ++j, arcs += stride, pairs += n_labels) {
    const Lanes factor = broadcast(before[j]);
    for (int k = 0; k < stride; k += kLanes)
      row.store_at(pairs, k, j < n_inner, factor * load(arcs + k) * load(after + k));
  }
}

// least[c] = min_r x[r] * matrix[r, c] over kVectors * kLanes columns, ignoring products that are
// NaN.
template <int kVectors>
HEDGEROW_INLINE void fill_least_columns(const double* x, const double* matrix, int n_rows,
                                        int stride, double* least) {
  Lanes folds[kVectors];
  for (int v = 0; v < kVectors; ++v) folds[v] = broadcast(kInfinity);
  for (int r = 0; r < n_rows; ++r, matrix += stride) {
    const Lanes factor = broadcast(x[r]);
    for (int v = 0; v < kVectors; ++v)
      folds[v] = minimum(factor * load(matrix + v * kLanes), folds[v]);
  }
  for (int v = 0; v < kVectors; ++v) store(least + v * kLanes, folds[v]);
}
HEDGEROW_INLINE void fill_least(const double* x, const double* matrix, int n_rows, int stride,
                                double* least) {
  for (int c = 0; c < stride; c += 4 * kLanes) {
    switch (std::min(4, (stride - c) / kLanes)) {
      case 1: fill_least_columns<1>(x, matrix + c, n_rows, stride, least + c); break;
      case 2: fill_least_columns<2>(x, matrix + c, n_rows, stride, least + c); break;
      case 3: fill_least_columns<3>(x, matrix + c, n_rows, stride, least + c); break;
      default: fill_least_columns<4>(x, matrix + c, n_rows, stride, least + c); break;
    }
  }
}

// per_sum = 1 / sums, infinite for labels that are impossible: those whose factor or sum is 0.
// Multiplied by an entry of a matrix, this is never the minimum, whether the product is infinite or
// infinity * 0 = NaN.
HEDGEROW_INLINE void invert_sums(const double* factors, const double* sums, int stride,
                                 double* per_sum) {
  for (int k = 0; k < stride; k += kLanes)
    store(per_sum + k,
          if_positive(load(factors + k), broadcast(1.0) / load(sums + k), broadcast(kInfinity)));
}

// The mixing rate 1 - sum_k min_j P(k | j), where P(k | j) = matrix[j, k] after[k] / sums[j] is the
// probability of the next label. scratch: (2, stride)
HEDGEROW_INLINE float rate_to_next(const double* factors, const double* sums, const double* matrix,
                                   const double* after, int n_labels, int stride, double* scratch) {
  double* least = scratch + stride;
  invert_sums(factors, sums, stride, scratch);
  fill_least(scratch, matrix, n_labels, stride, least);
  double overlap = 0.0;
  for (int k = 0; k < n_labels; ++k) overlap += after[k] > 0.0 ? least[k] * after[k] : 0.0;
  return static_cast<float>(std::clamp(1.0 - overlap, 0.0, 1.0));
}

// The same for the previous label, P(j | k) = before[j] matrix[j, k] / sums[k]. scratch: (stride,)
HEDGEROW_INLINE float rate_to_previous(const double* factors, const double* sums,
                                       const double* matrix, const double* before, int n_labels,
                                       int stride, double* scratch) {
  invert_sums(factors, sums, stride, scratch);
  double overlap = 0.0;
  for (int j = 0; j < n_labels; j += kLanes, matrix += int64_t{kLanes} * stride) {
    Lanes least[kLanes];
    for (Lanes& of_row : least) of_row = broadcast(kInfinity);
    for (int k = 0; k < stride; k += kLanes)
      for (int i = 0; i < kLanes; ++i)
        least[i] = minimum(load(matrix + static_cast<int64_t>(i) * stride + k) * load(scratch + k),
                           least[i]);
    transpose(least);
    double smallest[kLanes];
    store(smallest, minimum(minimum(least[0], least[1]), minimum(least[2], least[3])));
    for (int i = 0; i < kLanes && j + i < n_labels; ++i)
      overlap += before[j + i] > 0.0 ? smallest[i] * before[j + i] : 0.0;
  }
  return static_cast<float>(std::clamp(1.0 - overlap, 0.0, 1.0));
}

// The label that is nearly certain, -1 if none is, and the probability of all others.
struct LikelyLabel {
  int64_t label = -1;
  double others = 0.0;
};
// largest: the largest of the marginals
template <class Wide = Lanes>
HEDGEROW_INLINE LikelyLabel find_likely(const double* marginals, int stride, double largest) {
  constexpr double kLikely = 0.99;
  if (!(largest > kLikely)) return {};
  constexpr double kNumbers[] = {0, 1, 2, 3, 4, 5, 6, 7};
  Lanes others = broadcast(0.0), label = broadcast(0.0);
  for_each_vector<Wide>(stride, [&]<class Vector>(int k) HEDGEROW_INLINE_LAMBDA {
    const Vector probs = load_as<Vector>(marginals + k);
    const Vector below = broadcast_to<Vector>(largest) - probs;
    const Vector labels = load_as<Vector>(kNumbers) + broadcast_to<Vector>(k);
    add_parts(where_positive(below, probs), others);
    add_parts(labels - where_positive(below, labels), label);
  });
  return {static_cast<int64_t>(sum_lanes(label)), sum_lanes(others)};
}

// The same, if the largest is not known yet.
HEDGEROW_INLINE LikelyLabel find_likely(const double* marginals, int stride) {
  Lanes largest = broadcast(0.0);
  for (int k = 0; k < stride; k += kLanes) largest = maximum(load(marginals + k), largest);
  return find_likely(marginals, stride, max_lane(largest));
}

// out = factor * row, over padded rows.
template <class Wide = Lanes>
HEDGEROW_INLINE void scale_row(double factor, const double* row, int stride, double* out) {
  for_each_vector<Wide>(stride, [&]<class Vector>(int k) HEDGEROW_INLINE_LAMBDA {
    store_all(out + k, broadcast_to<Vector>(factor) * load_as<Vector>(row + k));
  });
}

// out = a * b entry by entry; returns the sum.
template <class Wide>
HEDGEROW_INLINE double multiply_rows(const double* a, const double* b, int stride, double* out) {
  Lanes sums = broadcast(0.0);
  for_each_vector<Wide>(stride, [&]<class Vector>(int k) HEDGEROW_INLINE_LAMBDA {
    const Vector entries = load_as<Vector>(a + k) * load_as<Vector>(b + k);
    store_all(out + k, entries);
    add_parts(entries, sums);
  });
  return sum_lanes(sums);
}

}  // namespace
}  // namespace hedgerow
