#include "trees/bins.hpp"

#include "simd.hpp"

namespace hedgerow {
namespace {

constexpr int64_t kTaskRows = 256;
constexpr int64_t kTaskEntries = 1 << 14;

constexpr int kSearches = 8;  // searches in flight

// Bins of n values of a column, the strides apart: 1 + the number of cuts that are <=
// the value, 0 for NaN. The number of steps depends on the cuts alone, and there is no branch on a
// value: the searches go on side by side, so that none waits for the loads of another.
template <int n>
HEDGEROW_INLINE void find_bins(const double* values, int64_t value_stride, const double* cuts,
                               int64_t n_cuts, uint8_t* bins, int64_t stride) {
  int64_t below[n] = {};
  int64_t left = n_cuts;
  while (left > 1) {
    const int64_t half = left / 2;
    const double* middle = cuts + half - 1;
    for (int i = 0; i < n; ++i)
      below[i] += half & -static_cast<int64_t>(middle[below[i]] <= values[i * value_stride]);
    left -= half;
  }
  for (int i = 0; i < n; ++i) {
    const double value = values[i * value_stride];
    if (left == 1) below[i] += static_cast<int64_t>(cuts[below[i]] <= value);
    bins[i * stride] = static_cast<uint8_t>((1 + below[i]) & -static_cast<int64_t>(value == value));
  }
}

void fill_rows(const Cuts& cuts, const double* values, int64_t n_rows, int64_t n_columns,
               uint8_t* bins, int64_t stride) {
  for (int64_t c = 0; c < n_columns; ++c) {
    const double* column_cuts = cuts.values + cuts.offsets[c];
    const int64_t n_cuts = cuts.offsets[c + 1] - cuts.offsets[c];
    int64_t r = 0;
    for (; r + kSearches <= n_rows; r += kSearches)
      find_bins<kSearches>(values + r * n_columns + c, n_columns, column_cuts, n_cuts,
                           bins + r * stride + c, stride);
    for (; r < n_rows; ++r)
      find_bins<1>(values + r * n_columns + c, n_columns, column_cuts, n_cuts,
                   bins + r * stride + c, stride);
  }
}

}  // namespace

void fill_bins(const Cuts& cuts, const double* values, int64_t n_rows, int64_t n_columns,
               uint8_t* bins, int64_t stride, int n_threads, Stop& stop) {
  parallel_for_pieces(n_rows, kTaskRows, n_threads, stop, [&](int64_t first, int64_t end) {
    fill_rows(cuts, values + first * n_columns, end - first, n_columns, bins + first * stride,
              stride);
  });
}

void fill_entry_bins(const Cuts& cuts, const double* values, const int32_t* columns,
                     int64_t n_entries, uint8_t* bins, int n_threads, Stop& stop) {
  parallel_for_pieces(n_entries, kTaskEntries, n_threads, stop, [&](int64_t first, int64_t end) {
    for (int64_t e = first; e < end; ++e) {
      const int64_t* bounds = cuts.offsets + columns[e];
      find_bins<1>(values + e, 1, cuts.values + bounds[0], bounds[1] - bounds[0], bins + e, 1);
    }
  });
}

}  // namespace hedgerow
