#include "trees/bins.hpp"

#include "simd.hpp"

namespace hedgerow {
namespace {

constexpr int64_t kTaskRows = 256;
constexpr int64_t kTaskEntries = 1 << 14;

// The number of steps depends on the column alone, and there is no branch on a value, so that the
// searches of neighbouring values overlap.
HEDGEROW_INLINE uint8_t bin_of(double value, const double* cuts, int64_t n_cuts) {
  const double* first = cuts;
  int64_t left = n_cuts;
  while (left > 1) {
    const int64_t half = left / 2;
    first += half * static_cast<int64_t>(first[half - 1] <= value);
    left -= half;
  }
  int64_t below = first - cuts;
  if (left == 1) below += static_cast<int64_t>(*first <= value);
  return static_cast<uint8_t>((1 + below) * static_cast<int64_t>(value == value));
}

void fill_rows(const Cuts& cuts, const double* values, int64_t n_rows, int64_t n_columns,
               uint8_t* bins, int64_t stride) {
  for (int64_t c = 0; c < n_columns; ++c) {
    const double* column_cuts = cuts.values + cuts.offsets[c];
    const int64_t n_cuts = cuts.offsets[c + 1] - cuts.offsets[c];
    for (int64_t r = 0; r < n_rows; ++r)
      bins[r * stride + c] = bin_of(values[r * n_columns + c], column_cuts, n_cuts);
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
      bins[e] = bin_of(values[e], cuts.values + bounds[0], bounds[1] - bounds[0]);
    }
  });
}

}  // namespace hedgerow
