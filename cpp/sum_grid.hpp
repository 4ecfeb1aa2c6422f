// Sums that do not depend on the order of the terms: every number is first rounded to a grid, whose
// multiples are added without rounding.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "simd.hpp"

namespace hedgerow {

class SumGrid {
 public:
  // bound: upper bound on the sum of absolute values, over all processes; 0: numbers are not
  // rounded
  explicit SumGrid(double bound)
      : shift_(bound > 0.0 && std::isfinite(bound) ? std::ldexp(1.5, std::ilogb(bound) + 2) : 0.0) {
  }

  // Rounds to the nearest multiple of 2^-51 times the power of two above the bound: adding a much
  // larger number rounds off the lower digits.
  double round(double x) const { return (x + shift_) - shift_; }
  HEDGEROW_INLINE Lanes round(Lanes x) const {
    const Lanes shift = broadcast(shift_);
    return (x + shift) - shift;
  }
  // The same for Lanes or EightLanes.
  template <class Vector>
  HEDGEROW_INLINE Vector round_lanes(Vector x) const {
    if constexpr (std::is_same_v<Vector, Lanes>)
      return round(x);
    else
      return (x + shift_) - shift_;
  }
  // Numbers are rounded to multiples of this; 0: they are not rounded.
  double unit() const { return shift_ / 0x1.8p52; }
  // The grid for the bound times a factor, a power of two
  SumGrid times(double factor) const {
    SumGrid grid(*this);
    grid.shift_ *= factor;
    return grid;
  }

 private:
  double shift_;
};

// A table of such sums; null: not requested.
struct SumTable {
  double* sums;
  SumGrid grid;

  explicit operator bool() const { return sums != nullptr; }
  void add(int64_t place, double x) const { sums[place] += grid.round(x); }
};

// Curvatures of label pairs are multiplied by gammas, which grow with the length of a sequence;
// steps do not depend on their last digits.
inline SumGrid curvature_grid(double bound) { return SumGrid(bound * 0x1p20); }

}  // namespace hedgerow
