#include "trellis/node_factors.hpp"

#include <algorithm>

#include "simd_exp.hpp"

namespace hedgerow {
namespace {

template <class Vector>
inline constexpr int kSizeOf = sizeof(Vector) / sizeof(double);

// The eight numbers from index 8 - n on are infinity n times, then -infinity.
alignas(64) constexpr double kLimits[16] = {
    kInfinity,  kInfinity,  kInfinity,  kInfinity,  kInfinity,  kInfinity,  kInfinity,  kInfinity,
    -kInfinity, -kInfinity, -kInfinity, -kInfinity, -kInfinity, -kInfinity, -kInfinity, -kInfinity};

// The first n numbers of a row, -inf in the other lanes. inner: whether whole lanes may be read
template <class Vector>
HEDGEROW_INLINE Vector load_first(const double* row, int n, bool inner) {
  if (inner) return minimum(load_as<Vector>(row), load_as<Vector>(kLimits + 8 - n));
  double lanes[kSizeOf<Vector>];
  for (int i = 0; i < kSizeOf<Vector>; ++i) lanes[i] = i < n ? row[i] : -kInfinity;
  return load_as<Vector>(lanes);
}

template <class Vector>
HEDGEROW_INLINE double max_of_lanes(Vector a) {
  constexpr int kSize = kSizeOf<Vector>;
  double lanes[kSize];
  store_all(lanes, a);
  Lanes largest = load(lanes);
  if (kSize > kLanes) largest = maximum(load(lanes + kSize - kLanes), largest);
  return max_lane(largest);
}

template <class Vector>
HEDGEROW_INLINE void exponentiate_rows(const double* nodes, int64_t n_rows, int n_labels,
                                       double* factors, double* maxima) {
  constexpr int kSize = kSizeOf<Vector>;
  const int whole = n_labels / kSize * kSize, rest = n_labels - whole;
  const int64_t end = n_rows * n_labels;
  for (int64_t t = 0; t < n_rows; ++t, factors += padded(n_labels)) {
    const int64_t begin = t * n_labels;
    const double* row = nodes + begin;
    Vector last = broadcast_to<Vector>(-kInfinity);
    if (rest > 0) last = load_first<Vector>(row + whole, rest, begin + whole + kSize <= end);
    Vector largest = last;
    for (int k = 0; k < whole; k += kSize) {
      HEDGEROW_PREFETCH(row + end + k);  // of the next sequence
      largest = maximum(load_as<Vector>(row + k), largest);
    }
    maxima[t] = max_of_lanes(largest);
    const Vector top = broadcast_to<Vector>(maxima[t]);
    for (int k = 0; k < whole; k += kSize)
      store_all(factors + k, exp_below_zero(load_as<Vector>(row + k) - top));
    if (rest > 0) store_all(factors + whole, exp_below_zero(last - top));
  }
}

}  // namespace

void fill_node_factors(const double* nodes, int64_t n_rows, int n_labels, double* factors,
                       double* maxima) {
  static const auto kernel =
      eight_wide_clone<exponentiate_rows<EightLanes>, exponentiate_rows<Lanes>>();
  kernel(nodes, n_rows, n_labels, factors, maxima);
}

}  // namespace hedgerow
