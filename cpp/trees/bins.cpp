#include "trees/bins.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "simd.hpp"
#include "simd_float.hpp"
#include "trees/tiles.hpp"

namespace hedgerow {
namespace {

constexpr int64_t kTaskRows = 256;
constexpr int64_t kTaskEntries = 1 << 14;

constexpr int kSearches = 8;            // searches in flight
constexpr int64_t kIndexedRows = 1000;  // from this many on, an index of the cuts is worthwhile
// Up to this many cuts, comparing with all of them is faster than a search.
constexpr int64_t kMostCompared = 48;

// Bins of n values of a column: 1 + the number of cuts that are <= the value, 0 for NaN. The number
// of steps depends only on the cuts, and there is no branch on a value: searches run interleaved,
// so that none waits for the loads of another.
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
  search_cuts<kCounted<T>>(values, cuts, n_cuts, bins);
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

// An index of many cuts of a column: buckets of equal width, which locate most values quickly.
template <class T>
class CutIndex {
 public:
  CutIndex(const T* cuts, int64_t n_cuts) : first_(cuts[0]) {
    std::copy_n(cuts, n_cuts, cuts_);
    std::fill(cuts_ + n_cuts, std::end(cuts_), std::numeric_limits<T>::quiet_NaN());  // never <=
    scale_ = kBuckets / (cuts[n_cuts - 1] - first_);
    int64_t c = 0;
    for (int32_t bucket = 0; bucket < kBuckets; ++bucket) {
      starts_[bucket] = static_cast<uint8_t>(c);
      while (c < n_cuts && bucket_of(cuts[c]) == bucket) ++c;
      most_ = std::max(most_, c - starts_[bucket]);
    }
  }

  // The largest number of cuts in one bucket.
  int64_t most() const { return most_; }

  // A value that is not below another is in no earlier bucket, so all cuts in earlier buckets than
  // its own are <= a value, and none in later ones is.
  HEDGEROW_INLINE void find(const T* values, int64_t n, uint8_t* bins) const {
    int64_t i = 0;
    for (; i + kTogether <= n; i += kTogether) find_some<kTogether>(values + i, bins + i);
    for (; i < n; ++i) find_some<1>(values + i, bins + i);
  }

 private:
  static constexpr int32_t kBuckets = 1024;
  static constexpr int kTogether = 16;

  // Also defined for numbers that are not finite.
  HEDGEROW_INLINE int32_t bucket_of(T value) const {
    constexpr T kLast = kBuckets - 1;
    const T place = (value - first_) * scale_;
    return static_cast<int32_t>(place > 0 ? (place < kLast ? place : kLast) : T{0});
  }

  // The same for kTogether values, without branches, which missing values would make unpredictable.
  HEDGEROW_INLINE void find_buckets(const T* values, int32_t* buckets) const {
    constexpr int kEach = 32 / static_cast<int>(sizeof(T));
    const auto first = broadcast(first_), scale = broadcast(scale_);
    const auto zero = broadcast(T{0}), last = broadcast(T{kBuckets - 1});
    T places[kTogether];
    for (int i = 0; i < kTogether; i += kEach)
      store(places + i, minimum(maximum((load(values + i) - first) * scale, zero), last));
    for (int i = 0; i < kTogether; ++i) buckets[i] = static_cast<int32_t>(places[i]);
  }

  template <int n>
  HEDGEROW_INLINE void find_some(const T* values, uint8_t* bins) const {
    int32_t below[n];
    if constexpr (n == kTogether)
      find_buckets(values, below);
    else
      for (int i = 0; i < n; ++i) below[i] = bucket_of(values[i]);
    for (int i = 0; i < n; ++i) below[i] = starts_[below[i]];
    int64_t left = most_;
    while (left > 0) {
      const auto half = static_cast<int32_t>((left + 1) / 2);
      for (int i = 0; i < n; ++i) {
        const int32_t above = below[i] + half;
        below[i] = cuts_[above - 1] <= values[i] ? above : below[i];
      }
      left -= half;
    }
    for (int i = 0; i < n; ++i)
      bins[i] =
          static_cast<uint8_t>((1 + below[i]) & -static_cast<int32_t>(values[i] == values[i]));
  }

  int64_t most_ = 0;
  T first_, scale_;
  T cuts_[2 * kMaxCuts];
  uint8_t starts_[kBuckets];  // how many cuts are in earlier buckets
};

namespace {

// Null if an index would not help, since outliers leave most cuts in one bucket.
template <class T>
std::unique_ptr<CutIndex<T>> build_index(const T* cuts, int64_t n_cuts) {
  auto index = std::make_unique<CutIndex<T>>(cuts, n_cuts);
  return index->most() < 8 ? std::move(index) : nullptr;
}

HEDGEROW_CLONES
void find_indexed_bins(const CutIndex<float>& index, const float* values, int64_t n,
                       uint8_t* bins) {
  index.find(values, n, bins);
}

HEDGEROW_CLONES
void find_indexed_bins(const CutIndex<double>& index, const double* values, int64_t n,
                       uint8_t* bins) {
  index.find(values, n, bins);
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
  const auto n_cuts = [&](int64_t c) { return cuts.offsets[c + 1] - cuts.offsets[c]; };
  std::vector<std::unique_ptr<CutIndex<Number>>> indices(n_columns);  // where it pays
  for (int64_t c = 0; c < n_columns && n_rows >= kIndexedRows; ++c)
    if (n_cuts(c) > kMostCompared)
      indices[c] = build_index(rounded.data() + cuts.offsets[c], n_cuts(c));
  parallel_for_pieces(n_rows, kTaskRows, n_threads, stop, [&](int64_t first, int64_t end) {
    Number tile[kTileColumns * kTaskRows];
    uint8_t tile_bins[kTileColumns * kTaskRows];
    const int64_t n = end - first;
    for (int64_t begin = 0; begin < n_columns; begin += kTileColumns) {
      const int64_t n_tile = std::min(kTileColumns, n_columns - begin);
      copy_tile(values + first * n_columns + begin, n_columns, n, n_tile, tile, kTaskRows);
      for (int64_t i = 0; i < n_tile; ++i) {
        const int64_t c = begin + i;
        const Number* column = tile + i * kTaskRows;
        uint8_t* column_bins = tile_bins + i * kTaskRows;
        if (indices[c] != nullptr)
          find_indexed_bins(*indices[c], column, n, column_bins);
        else
          fill_column_bins(column, n, rounded.data() + cuts.offsets[c], n_cuts(c), column_bins);
      }
      copy_bytes(tile_bins, kTaskRows, n_tile, n, bins + first * stride + begin, stride);
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
