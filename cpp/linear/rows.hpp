// Sums of rows of outputs.
#pragma once

#include "simd_wide.hpp"

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

// kVectors * kLanes doubles of a row in registers: in vectors of type Wide, and what is left in
// Lanes.
template <class Wide, int kVectors>
class RowVectors {
 public:
  // visit(vector, k) for each vector, of which the first lane is column k.
  template <class Visit>
  HEDGEROW_INLINE void for_each(Visit visit) {
    for (int v = 0; v < kWide; ++v) visit(wide_[v], v * kSize);
    if constexpr (kRest > 0) visit(rest_, kWide * kSize);
  }

 private:
  static constexpr int kSize = sizeof(Wide) / sizeof(double);
  static constexpr int kWide = kVectors * kLanes / kSize;
  static constexpr int kRest = kVectors - kWide * kSize / kLanes;
  Wide wide_[kWide > 0 ? kWide : 1];
  Lanes rest_;
};

// Rows of up to this many vectors of kLanes are summed in registers.
inline constexpr int kRegisterLanes = 8;

// Calls body.template run<N>() with the number of vectors that hold n doubles; N = 0: too many for
// registers.
template <class Body>
HEDGEROW_INLINE void with_lanes(int n, const Body& body) {
  static_assert(kRegisterLanes == 8);
  switch (padded(n) / kLanes) {
    case 1: return body.template run<1>();
    case 2: return body.template run<2>();
    case 3: return body.template run<3>();
    case 4: return body.template run<4>();
    case 5: return body.template run<5>();
    case 6: return body.template run<6>();
    case 7: return body.template run<7>();
    case 8: return body.template run<8>();
    default: return body.template run<0>();
  }
}

// Prefetches the n doubles from here on.
HEDGEROW_INLINE void prefetch_row(const double* row, int n) {
  constexpr int kLine = 8;  // doubles of a cache line
  for (int i = 0; i < n; i += kLine) HEDGEROW_PREFETCH(row + i);
}

}  // namespace hedgerow
