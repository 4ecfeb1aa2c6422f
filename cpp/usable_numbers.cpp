#include "usable_numbers.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "simd.hpp"

namespace hedgerow {
namespace {

constexpr int64_t kTaskValues = 1 << 16;
constexpr int64_t kRunValues = 256;

template <class Value>
HEDGEROW_INLINE bool is_unusable(Value value, Value largest, bool may_be_missing) {
  return std::abs(value) > largest || (!may_be_missing && value != value);
}

// Whether all of kRunValues are usable; NaN is not larger than any number.
template <class Value>
HEDGEROW_INLINE bool are_usable(const Value* values, Value largest, bool may_be_missing) {
  int n_unusable = 0;
  for (int64_t i = 0; i < kRunValues; ++i) n_unusable += std::abs(values[i]) > largest;
  if (may_be_missing) return n_unusable == 0;
  for (int64_t i = 0; i < kRunValues; ++i) n_unusable += values[i] != values[i];
  return n_unusable == 0;
}

template <class Value>
HEDGEROW_INLINE int64_t find_in_piece(const Value* values, int64_t n, Value largest,
                                      bool may_be_missing) {
  int64_t i = 0;
  while (i + kRunValues <= n && are_usable(values + i, largest, may_be_missing)) i += kRunValues;
  while (i < n && !is_unusable(values[i], largest, may_be_missing)) ++i;
  return i;
}

HEDGEROW_CLONES
int64_t find_first(const float* values, int64_t n, float largest, bool may_be_missing) {
  return find_in_piece(values, n, largest, may_be_missing);
}
HEDGEROW_CLONES
int64_t find_first(const double* values, int64_t n, double largest, bool may_be_missing) {
  return find_in_piece(values, n, largest, may_be_missing);
}

}  // namespace

template <class Value>
int64_t find_unusable(const Value* values, int64_t n, Value largest, bool may_be_missing,
                      int n_threads, Stop& stop) {
  std::vector<int64_t> found((n + kTaskValues - 1) / kTaskValues, n);  // by piece
  parallel_for_pieces(n, kTaskValues, n_threads, stop, [&](int64_t begin, int64_t end) {
    const int64_t first = begin + find_first(values + begin, end - begin, largest, may_be_missing);
    if (first < end) found[begin / kTaskValues] = first;
  });
  return found.empty() ? n : *std::min_element(found.begin(), found.end());
}

template int64_t find_unusable(const float*, int64_t, float, bool, int, Stop&);
template int64_t find_unusable(const double*, int64_t, double, bool, int, Stop&);

}  // namespace hedgerow
