// Sides: the direction of examples at a split on a column.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "trees/data.hpp"
#include "trees/split.hpp"

namespace hedgerow {

enum Side : uint8_t { kRightSide = 0, kLeftSide = 1, kNoSide = 2 };

class Sides {
 public:
  // Missing values have no side if `leaves_out`, otherwise that of the split.
  Sides(const TreeData& data, const Split& split, bool leaves_out) : data_(data), split_(split) {
    for (int bin = 0; bin <= data.bins().n_bins[split.column]; ++bin)
      of_bins_[bin] = contains(split.left_bins, static_cast<uint8_t>(bin)) ? kLeftSide : kRightSide;
    if (leaves_out) of_bins_[0] = kNoSide;
  }

  // Fills the sides of some positions, and returns how many of them go left.
  int64_t fill(std::span<const int32_t> positions, uint8_t* sides) const {
    return with_side_of([&](auto side_of) {
      int64_t n_left = 0;
      for (const int32_t t : positions) n_left += (*sides++ = side_of(t)) & 1;
      return n_left;
    });
  }

  // Copies positions to the left and to the right, in order, and returns how many go left. Each
  // goes to both and is kept where it should: there is no branch to be guessed wrong. `right` may
  // be where they are, or before. Not where some have no side.
  int64_t part(std::span<const int32_t> positions, int32_t* left, int32_t* right) const {
    return with_side_of([&](auto side_of) {
      int64_t n_left = 0, n_right = 0;
      for (const int32_t t : positions) {
        const int64_t is_left = side_of(t);
        left[n_left] = right[n_right] = t;
        n_left += is_left;
        n_right += 1 - is_left;
      }
      return n_left;
    });
  }

 private:
  // use(side_of), where side_of(t) is the side of position t.
  template <class Use>
  int64_t with_side_of(const Use& use) const {
    const int offset = split_.offset;
    const uint8_t outside = split_.outside_left ? kLeftSide : kRightSide;
    const auto holds = [&](int32_t t) { return data_.room().holds(t, offset); };
    if (split_.column >= data_.bins().n_dense)
      return use([&](int32_t t) {
        return holds(t) ? of_bins_[data_.bin_at(t, split_.column, offset)] : outside;
      });
    const uint8_t* column = data_.column(split_.column);
    if (offset == 0) return use([&](int32_t t) { return of_bins_[column[t]]; });
    return use([&](int32_t t) {
      return holds(t) ? of_bins_[column[data_.room().row(t, offset)]] : outside;
    });
  }

  const TreeData& data_;
  const Split& split_;
  std::array<uint8_t, 256> of_bins_;  // as many as the column has
};

}  // namespace hedgerow
