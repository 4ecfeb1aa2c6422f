#include "trees/bins.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "simd.hpp"
#include "simd_float.hpp"
#include "trees/tiles.hpp"

namespace hedgerow {
namespace {

constexpr int64_t kTaskRows = 256;
constexpr int64_t kTaskEntries = 1 << 14;

constexpr int kSearches = 8;  // searches in flight
// Up to so many cuts are sooner all compared than searched.
constexpr int64_t kMostCompared = 48;

// Bins of n values of a column: 1 + the number of cuts that are <= the value, 0 for NaN. The number
// of steps depends on the cuts alone, and there is no branch on a value: the searches go on side by
// side, so that none waits for the loads of another.
template <int n, class T>
HEDGEROW_INLINE void search_cuts(const T* values, const T* cuts, int64_t n_cuts, uint8_t* bins) {
  int64_t below[n] = {};
  int64_t left = n_cuts;
  while (left > 1) {
    const int64_t half = left / 2;
    for (int i = 0; i < n; ++i) {
      const int64_t above = below[i] + half;
      below[i] = cuts[above - 1] <= values[i] ? above : below[i];
    }
    left -= half;
  }
  for (int i = 0; i < n; ++i) {
    if (left == 1) below[i] += static_cast<int64_t>(cuts[below[i]] <= values[i]);
    bins[i] = static_cast<uint8_t>((1 + below[i]) & -static_cast<int64_t>(values[i] == values[i]));
  }
}

#if defined(__GNUC__)

constexpr int kVectors = 4;

template <class T>
constexpr int kCounted = kVectors * 32 / static_cast<int>(sizeof(T));

// The same for kCounted<T> values, which are compared with one cut after the other.
template <class T>
HEDGEROW_INLINE void compare_cuts(const T* values, const T* cuts, int64_t n_cuts, uint8_t* bins) {
  using Vector = decltype(load(values));
  using Counts = decltype(Vector{} <= Vector{});
  constexpr int kEach = kCounted<T> / kVectors;
  Vector vectors[kVectors];
  Counts counts[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    vectors[v] = load(values + v * kEach);
    counts[v] = Counts{};
  }
  for (int64_t c = 0; c < n_cuts; ++c) {
    const Vector cut = broadcast(cuts[c]);
    for (int v = 0; v < kVectors; ++v) counts[v] -= cut <= vectors[v];
  }
  for (int v = 0; v < kVectors; ++v) counts[v] = (counts[v] + 1) & (vectors[v] == vectors[v]);
  std::conditional_t<sizeof(T) == 4, int32_t, int64_t> numbers[kCounted<T>];
  std::memcpy(numbers, counts, sizeof(numbers));
  for (int i = 0; i < kCounted<T>; ++i) bins[i] = static_cast<uint8_t>(numbers[i]);
}

#else

template <class T>
constexpr int kCounted = 8;

template <class T>
void compare_cuts(const T* values, const T* cuts, int64_t n_cuts, uint8_t* bins) {
  search_cuts<kCounted<T> >(values, cuts, n_cuts, bins);
}

#endif

template <class T>
HEDGEROW_INLINE void find_column_bins(const T* values, int64_t n, const T* cuts, int64_t n_cuts,
                                      uint8_t* bins) {
  int64_t i = 0;
  if (n_cuts <= kMostCompared)
    for (; i + kCounted<T> <= n; i += kCounted<T>) compare_cuts(values + i, cuts, n_cuts, bins + i);
  for (; i + kSearches <= n; i += kSearches)
    search_cuts<kSearches>(values + i, cuts, n_cuts, bins + i);
  for (; i < n; ++i) search_cuts<1>(values + i, cuts, n_cuts, bins + i);
}

}  // namespace

HEDGEROW_CLONES
void fill_column_bins(const float* values, int64_t n, const float* cuts, int64_t n_cuts,
                      uint8_t* bins) {
  find_column_bins(values, n, cuts, n_cuts, bins);
}

HEDGEROW_CLONES
void fill_column_bins(const double* values, int64_t n, const double* cuts, int64_t n_cuts,
                      uint8_t* bins) {
  find_column_bins(values, n, cuts, n_cuts, bins);
}

template <class Value>
void fill_bins(const Cuts& cuts, const Value* values, int64_t n_rows, int64_t n_columns,
               uint8_t* bins, int64_t stride, int n_threads, Stop& stop) {
  using Number = Compared<Value>;
  std::vector<Number> rounded(cuts.offsets[n_columns]);
  std::transform(cuts.values, cuts.values + rounded.size(), rounded.begin(), round_up<Number>);
  parallel_for_pieces(n_rows, kTaskRows, n_threads, stop, [&](int64_t first, int64_t end) {
    Number tile[kTileColumns * kTaskRows];
    uint8_t column_bins[kTaskRows];
    const int64_t n = end - first;
    for (int64_t begin = 0; begin < n_columns; begin += kTileColumns) {
      const int64_t n_tile = std::min(kTileColumns, n_columns - begin);
      copy_tile(values + first * n_columns + begin, n_columns, n, n_tile, tile, kTaskRows);
      for (int64_t c = begin; c < begin + n_tile; ++c) {
        fill_column_bins(tile + (c - begin) * kTaskRows, n, rounded.data() + cuts.offsets[c],
                         cuts.offsets[c + 1] - cuts.offsets[c], column_bins);
        uint8_t* out = bins + first * stride + c;
        for (int64_t i = 0; i < n; ++i) out[i * stride] = column_bins[i];
      }
    }
  });
}

template void fill_bins(const Cuts&, const float*, int64_t, int64_t, uint8_t*, int64_t, int, Stop&);
template void fill_bins(const Cuts&, const double*, int64_t, int64_t, uint8_t*, int64_t, int,
                        Stop&);
template void fill_bins(const Cuts&, const uint8_t*, int64_t, int64_t, uint8_t*, int64_t, int,
                        Stop&);

void fill_entry_bins(const Cuts& cuts, const double* values, const int32_t* columns,
                     int64_t n_entries, uint8_t* bins, int n_threads, Stop& stop) {
  parallel_for_pieces(n_entries, kTaskEntries, n_threads, stop, [&](int64_t first, int64_t end) {
    for (int64_t e = first; e < end; ++e) {
      const int64_t* bounds = cuts.offsets + columns[e];
      search_cuts<1>(values + e, cuts.values + bounds[0], bounds[1] - bounds[0], bins + e);
    }
  });
}

}  // namespace hedgerow
