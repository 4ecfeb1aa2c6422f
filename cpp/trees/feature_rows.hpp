// Feature rows: the bins of all features that trees split on, contiguous for each position.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "trees/asked_attributes.hpp"
#include "trees/data.hpp"

namespace hedgerow {

// First the bytes of all dense columns in the window, then the attributes in use; 0 beyond the ends
// of a sequence. Any number of threads may read them.
class FeatureRows {
 public:
  FeatureRows(const AskedAttributes& asked, const BinTable& bins, const Room& room)
      : asked_(asked), bins_(bins), room_(room) {
    if (asked.size() > 0) usual_ = asked.default_bins(bins);
  }

  // Index in a row of a column at an offset.
  static int32_t place(const AskedAttributes& asked, int32_t n_dense, int32_t column, int offset) {
    if (column < n_dense) return asked.reach().number(offset) * n_dense + column;
    return asked.n_offsets() * n_dense + asked.find(column - n_dense, offset);
  }

  // Bytes of a row; at least 1, since even a tree that is a single leaf reads one.
  size_t width() const {
    return std::max<size_t>(static_cast<size_t>(asked_.n_offsets()) * bins_.n_dense + asked_.size(),
                            1);
  }

  // The row of a position: in place if possible, otherwise copied to `row`.
  const uint8_t* find(int64_t t, uint8_t* row) const {
    if (usual_.empty() && bins_.n_dense > 0) return room_.window(bins_, t, row);
    room_.fill_window(bins_, t, row);
    if (!usual_.empty()) fill_attributes(t, row);
    return row;
  }

 private:
  // Fills in the bins of the attributes in use, after those of the dense columns.
  void fill_attributes(int64_t t, uint8_t* row) const {
    uint8_t* attributes = row + asked_.n_offsets() * static_cast<int64_t>(bins_.n_dense);
    std::copy(usual_.begin(), usual_.end(), attributes);
    asked_.for_each_entry(bins_, room_, t,
                          [&](int32_t number, uint8_t bin) { attributes[number] = bin; });
    if (room_.holds_all(t)) return;
    for (size_t f = 0; f < usual_.size(); ++f)
      if (!room_.holds(t, asked_.features()[f].offset)) attributes[f] = 0;
  }

  const AskedAttributes& asked_;
  const BinTable& bins_;
  const Room& room_;
  std::vector<uint8_t> usual_;  // bins of the attributes in use at a position without entries
};

}  // namespace hedgerow
