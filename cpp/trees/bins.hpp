// Bins of numbers: which of a column's intervals a value lies in.
#pragma once

#include <cstdint>

#include "parallel.hpp"

namespace hedgerow {

// Where the bins of columns end. Column c has the cuts offsets[c] to offsets[c + 1], at most
// kMaxCuts of them, rising.
struct Cuts {
  const int64_t* offsets;  // (n_columns + 1,)
  const double* values;    // (offsets[n_columns],)
};

inline constexpr int64_t kMaxCuts = 254;

// The bin of a value is 1 + the number of its column's cuts that are <= the value, and 0 for NaN.

// values: (n_rows, n_columns). Writes the first n_columns of each row of bins: (n_rows, stride).
void fill_bins(const Cuts& cuts, const double* values, int64_t n_rows, int64_t n_columns,
               uint8_t* bins, int64_t stride, int n_threads, Stop& stop);

// The same for single values, each with its column. values, columns, bins: (n_entries,).
void fill_entry_bins(const Cuts& cuts, const double* values, const int32_t* columns,
                     int64_t n_entries, uint8_t* bins, int n_threads, Stop& stop);

}  // namespace hedgerow
