// Bins of numbers: the interval of a column that contains a value.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "parallel.hpp"

namespace hedgerow {

// Upper bounds of the bins of columns. Column c has the cuts offsets[c] to offsets[c + 1], at most
// kMaxCuts of them, ascending.
struct Cuts {
  const int64_t* offsets;  // (n_columns + 1,)
  const double* values;    // (offsets[n_columns],)
};

inline constexpr int64_t kMaxCuts = 254;

// The smallest T that is not below a cut: comparing a T with either gives the same result.
template <class T>
T round_up(double cut) {
  if (cut > std::numeric_limits<T>::max()) return std::numeric_limits<T>::infinity();
  if (cut < std::numeric_limits<T>::lowest()) return std::numeric_limits<T>::lowest();
  const auto near = static_cast<T>(cut);
  if (static_cast<double>(near) >= cut) return near;
  return std::nextafter(near, std::numeric_limits<T>::infinity());
}

// The bin of a value is 1 + the number of its column's cuts that are <= the value, and 0 for NaN.
// Values are floats, doubles or bytes; all that are equal have the same bin.

// The type in which values are compared.
template <class Value>
using Compared = std::conditional_t<std::is_same_v<Value, uint8_t>, float, Value>;

// values: (n_rows, n_columns). Writes the first n_columns of each row of bins: (n_rows, stride).
template <class Value>
void fill_bins(const Cuts& cuts, const Value* values, int64_t n_rows, int64_t n_columns,
               uint8_t* bins, int64_t stride, int n_threads, Stop& stop);

// The same for single values, each with its column. values, columns, bins: (n_entries,).
void fill_entry_bins(const Cuts& cuts, const double* values, const int32_t* columns,
                     int64_t n_entries, uint8_t* bins, int n_threads, Stop& stop);

// The same for n values of one column; cuts must have been rounded up, see round_up.
void fill_column_bins(const float* values, int64_t n, const float* cuts, int64_t n_cuts,
                      uint8_t* bins);
void fill_column_bins(const double* values, int64_t n, const double* cuts, int64_t n_cuts,
                      uint8_t* bins);

}  // namespace hedgerow
