// Segments of a list, one after the other.
#pragma once

#include "common.cuh"

// The segment that contains index `at`; starts (n + 1,) are their bounds; segments may be empty.
__device__ __forceinline__ int find_segment(const i64* starts, int n, i64 at) {
  int low = 0, high = n;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (starts[middle] <= at)
      low = middle;
    else
      high = middle;
  }
  return low;
}
