// Rows of logarithms, padded to whole lanes with -inf, inlined into the kernels in log space.
#pragma once

#include <cstdint>

#include "simd.hpp"

namespace hedgerow {
namespace {

// The largest number of a row.
HEDGEROW_INLINE double row_maximum(const double* row, int64_t stride) {
  Lanes largest = load(row);
  for (int64_t k = kLanes; k < stride; k += kLanes) largest = maximum(load(row + k), largest);
  return max_lane(largest);
}

// row = exp(row - maximum); returns the sum. A maximum of -inf leaves zeros.
HEDGEROW_INLINE double exponentiate(double* row, int64_t stride, double maximum_entry) {
  const Lanes shift = broadcast(maximum_entry == -kInfinity ? 0.0 : maximum_entry);
  Lanes sums = broadcast(0.0);
  for (int64_t k = 0; k < stride; k += kLanes) {
    const Lanes factors = exp_nonpositive(load(row + k) - shift);
    store(row + k, factors);
    sums += factors;
  }
  return sum_lanes(sums);
}

// out = a + b + shift
HEDGEROW_INLINE void add_rows(const double* a, const double* b, double shift, int64_t stride,
                              double* out) {
  for (int64_t k = 0; k < stride; k += kLanes)
    store(out + k, load(a + k) + load(b + k) + broadcast(shift));
}

}  // namespace
}  // namespace hedgerow
