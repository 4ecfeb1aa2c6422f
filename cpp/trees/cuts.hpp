// Cuts: the values at which one bin of a column ends and the next begins.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel.hpp"

namespace hedgerow {

// A cut lies halfway between two neighbouring values of a column. A column of at most max_bins
// distinct values has a bin for each. Others have max_bins, each with about the same number of
// values: a value that fills more than a bin has its own bin, and does not affect the cuts between
// others. Numbers that are not finite are ignored. Equal numbers are one value, including 0 and -0.

// Cuts of columns, one column after the other.
struct ColumnCuts {
  std::vector<int64_t> counts;  // by column
  std::vector<double> values;   // ascending within a column
};

// Cuts of columns of floats, doubles or bytes, from some rows, or from all n_rows if `rows` is
// null.
//
// values: (any number of rows, n_columns); rows: (n_rows,), fewer than 2^32.
template <class Value>
ColumnCuts cut_columns(const Value* values, int64_t n_columns, const int64_t* rows, int64_t n_rows,
                       int max_bins, int n_threads, Stop& stop);

// Entries of sparse attributes, at most one of an attribute at each of n_positions; where there is
// none, the value is 0.
struct AttributeValues {
  int64_t n_positions;
  int64_t n_attributes;
  int64_t n_entries;
  const int32_t* attributes;  // (n_entries,)
  const double* values;       // (n_entries,)
};

// Attributes of which all finite values are 0 or 1 have no cuts here.
ColumnCuts cut_attributes(const AttributeValues& entries, int max_bins, int n_threads, Stop& stop);

}  // namespace hedgerow
