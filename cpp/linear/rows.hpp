// Sums of rows of outputs.
#pragma once

#include "simd.hpp"

namespace hedgerow {

// sums[0 .. n) += factor * row[0 .. n), n a multiple of kLanes.
HEDGEROW_INLINE void add_row(double factor, const double* row, int n, double* sums) {
  const Lanes factors = broadcast(factor);
  for (int i = 0; i < n; i += kLanes) store(sums + i, load(sums + i) + factors * load(row + i));
}

// The same for any n.
HEDGEROW_INLINE void add_any_row(double factor, const double* row, int n, double* sums) {
  const int whole = n / kLanes * kLanes;
  add_row(factor, row, whole, sums);
  for (int i = whole; i < n; ++i) sums[i] += factor * row[i];
}

}  // namespace hedgerow
