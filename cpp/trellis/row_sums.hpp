// Sums over some entries of each row: from label patterns to the arcs that end in them, and back.
#pragma once

#include <cstdint>

#include "parallel.hpp"

namespace hedgerow {

// Sum i is over the entries places[offsets[i]] .. places[offsets[i + 1]] of a row.
struct RowSums {
  int64_t n_values;                 // entries of a row
  int64_t n_sums;                   // M
  const int64_t* offsets;           // (M + 1,)
  const int32_t* places;            // (offsets[M],)
  const double* weights = nullptr;  // (offsets[M],) of the entries; null: 1
};

// Fills sums (n_rows, M) from values (n_rows, n_values).
void fill_row_sums(const RowSums& wanted, int64_t n_rows, const double* values, double* sums,
                   int n_threads, Stop& stop);

}  // namespace hedgerow
