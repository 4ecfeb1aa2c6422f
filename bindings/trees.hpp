// Bins of some sequences, which trees are grown from and walked with.
#pragma once

#include <optional>

#include "arrays.hpp"
#include "trees/data.hpp"

namespace hedgerow::bindings {

// The table, with the arrays it lies in.
struct Bins {
  Array<const uint8_t, 2> dense;
  OptionalArray<const int64_t, 1> entry_offsets;
  OptionalArray<const int32_t, 1> attributes;
  OptionalArray<const uint8_t, 1> attribute_bins;
  Array<const int32_t, 1> n_bins;
  Array<const uint8_t, 1> default_bins;
  Array<const uint8_t, 1> categorical;
  Array<const int64_t, 1> offsets;
  BinTable table;

  int64_t n_sequences() const { return static_cast<int64_t>(offsets.shape(0)) - 1; }
};

}  // namespace hedgerow::bindings
