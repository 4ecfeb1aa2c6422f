// Bins and values of some sequences, which trees are grown from and walked with.
#pragma once

#include <optional>

#include "arrays.hpp"
#include "trees/data.hpp"

namespace hedgerow::bindings {

// The table, with the arrays that own its memory.
struct Bins {
  Array<const uint8_t, 2> dense;
  OptionalArray<const int64_t, 1> entry_offsets;
  OptionalArray<const int32_t, 1> attributes;
  OptionalArray<const uint8_t, 1> attribute_bins;
  Array<const int32_t, 1> n_bins;
  Array<const uint8_t, 1> default_bins;
  Array<const uint8_t, 1> categorical;
  Array<const int64_t, 1> offsets;
  OptionalArray<const int32_t, 1> parents;
  BinTable table;

  Sequences sequences() const {
    return {static_cast<int64_t>(offsets.shape(0)) - 1, offsets.data(), data_or_null(parents)};
  }
};

// Numbers (N, n_columns) of one of the types that are binned without conversion.
using Numbers = nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

inline Numbers read_numbers(const nb::any& values) {
  Numbers numbers;
  check(nb::try_cast(values, numbers, false),
        "values must be a C-contiguous array (rows, columns)");
  return numbers;
}

// Calls visit with a pointer to the numbers.
template <class Visit>
void visit_numbers(const Numbers& numbers, Visit visit) {
  if (numbers.dtype() == nb::dtype<float>())
    visit(static_cast<const float*>(numbers.data()));
  else if (numbers.dtype() == nb::dtype<double>())
    visit(static_cast<const double*>(numbers.data()));
  else if (numbers.dtype() == nb::dtype<uint8_t>())
    visit(static_cast<const uint8_t*>(numbers.data()));
  else
    throw std::invalid_argument("values must be of dtype float32, float64 or uint8");
}

// Values that are not binned yet, with the cuts of their columns.
struct ColumnValues {
  Numbers numbers;
  Offsets cut_offsets;
  Doubles cuts;
  Offsets offsets;

  size_t n_positions() const { return numbers.shape(0); }
  size_t n_columns() const { return numbers.shape(1); }
  Sequences sequences() const {
    return {static_cast<int64_t>(offsets.shape(0)) - 1, offsets.data()};
  }
};

}  // namespace hedgerow::bindings
