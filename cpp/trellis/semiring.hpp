// What "add" and "multiply" mean along paths, four sequences at a time.
//
// SumProduct adds probabilities, within the range of a double; LogSum does the same with their
// logarithms, slowly and for any range; MaxPlus keeps the best score.
//   kSums        whether add is a sum over paths, so that there are posteriors
//   kLogarithms  whether numbers are logarithms of weights
//   kZero, kOne  the numbers of no path, and of a factor that changes nothing
#pragma once

#include <cmath>

#include "simd.hpp"

namespace hedgerow {

struct SumProduct {
  static constexpr bool kSums = true;
  static constexpr bool kLogarithms = false;
  static constexpr double kZero = 0.0;
  static constexpr double kOne = 1.0;
  static HEDGEROW_INLINE Lanes add(Lanes a, Lanes b) { return a + b; }
  static HEDGEROW_INLINE Lanes multiply(Lanes a, Lanes b) { return a * b; }
  static HEDGEROW_INLINE double invert(double a) { return 1.0 / a; }
  // From a score of at most 0.
  static HEDGEROW_INLINE Lanes from_score(Lanes score) { return exp_nonpositive(score); }
  static HEDGEROW_INLINE Lanes to_prob(Lanes a) { return a; }
};

struct LogSum {
  static constexpr bool kSums = true;
  static constexpr bool kLogarithms = true;
  static constexpr double kZero = -kInfinity;
  static constexpr double kOne = 0.0;
  static HEDGEROW_INLINE Lanes add(Lanes a, Lanes b) {
    double sums[kLanes];
    for (int i = 0; i < kLanes; ++i) {
      const double larger = max_of(lane(a, i), lane(b, i)),
                   smaller = min_of(lane(a, i), lane(b, i));
      sums[i] = smaller == -kInfinity ? larger : larger + std::log1p(std::exp(smaller - larger));
    }
    return load(sums);
  }
  static HEDGEROW_INLINE Lanes multiply(Lanes a, Lanes b) { return a + b; }
  static HEDGEROW_INLINE double invert(double a) { return -a; }
  static HEDGEROW_INLINE Lanes from_score(Lanes score) { return score; }
  static HEDGEROW_INLINE Lanes to_prob(Lanes a) {
    return exp_nonpositive(minimum(a, broadcast(0.0)));
  }
};

struct MaxPlus {
  static constexpr bool kSums = false;
  static constexpr bool kLogarithms = true;
  static constexpr double kZero = -kInfinity;
  static constexpr double kOne = 0.0;
  static HEDGEROW_INLINE Lanes add(Lanes a, Lanes b) { return maximum(a, b); }
  static HEDGEROW_INLINE Lanes multiply(Lanes a, Lanes b) { return a + b; }
  static HEDGEROW_INLINE double invert(double a) { return -a; }
  static HEDGEROW_INLINE Lanes from_score(Lanes score) { return score; }
};

}  // namespace hedgerow
