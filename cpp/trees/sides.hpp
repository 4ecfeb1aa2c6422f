// Sides: the direction of examples at a split on a column.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "memory_pool.hpp"
#include "trees/data.hpp"
#include "trees/grown_tree.hpp"
#include "trees/split.hpp"

namespace hedgerow {

enum Side : uint8_t { kRightSide = 0, kLeftSide = 1, kNoSide = 2 };

class Sides {
 public:
  // Missing values have no side if `leaves_out`, otherwise that of the split.
  Sides(const TreeData& data, const Split& split, bool leaves_out)
      : Sides(data, split.column, split.offset, split.left_bins,
              split.outside_left ? kLeftSide : kRightSide) {
    if (leaves_out) of_bins_[0] = kNoSide;
  }
  // Neither missing values nor positions outside have a side.
  Sides(const TreeData& data, const Surrogate& surrogate)
      : Sides(data, surrogate.column, surrogate.offset, surrogate.left_bins, kNoSide) {
    of_bins_[0] = kNoSide;
  }

  // Fills the sides of some positions, and returns how many of them go left.
  int64_t fill(std::span<const int32_t> positions, uint8_t* sides) const {
    return with_side_of([&](auto side_of) {
      int64_t n_left = 0;
      for (const int32_t t : positions) n_left += (*sides++ = side_of(t)) & 1;
      return n_left;
    });
  }

  // Copies positions to the left and to the right, in order, and returns how many go left. Each is
  // written to both and is kept where it should be, so there is no branch to mispredict. `right`
  // may be the array of the positions itself, or begin before it. All must have a side.
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
  Sides(const TreeData& data, int32_t column, int offset, const BinSet& left_bins, Side outside)
      : data_(data), column_(column), offset_(offset), outside_(outside) {
    for (int bin = 0; bin <= data.bins().n_bins[column]; ++bin)
      of_bins_[bin] = contains(left_bins, static_cast<uint8_t>(bin)) ? kLeftSide : kRightSide;
  }

  // use(side_of), where side_of(t) is the side of position t.
  template <class Use>
  int64_t with_side_of(const Use& use) const {
    const int offset = offset_;
    const uint8_t outside = outside_;
    const auto holds = [&](int32_t t) { return data_.room().holds(t, offset); };
    if (column_ >= data_.bins().n_dense)
      return use([&](int32_t t) {
        return holds(t) ? of_bins_[data_.bin_at(t, column_, offset)] : outside;
      });
    const uint8_t* column = data_.column(column_);
    if (offset == 0) return use([&](int32_t t) { return of_bins_[column[t]]; });
    return use([&](int32_t t) {
      return holds(t) ? of_bins_[column[data_.room().row(t, offset)]] : outside;
    });
  }

  const TreeData& data_;
  int32_t column_;
  int offset_;
  Side outside_;                      // of positions beyond the ends of a sequence
  std::array<uint8_t, 256> of_bins_;  // by bin of the column
};

// Lists which of n examples, at most 2^16, have this side, and returns how many do.
inline int64_t list_side(Side side, const uint8_t* marks, int64_t n, uint16_t* examples) {
  int64_t n_listed = 0;
  for (int64_t i = 0; i < n; ++i) {
    examples[n_listed] = static_cast<uint16_t>(i);
    n_listed += marks[i] == side;
  }
  return n_listed;
}

// Positions by the marks of their sides.
class BySide {
 public:
  BySide(const std::shared_ptr<MemoryPool>& pool, std::span<const int32_t> positions,
         const uint8_t* marks);

  std::span<const int32_t> of(Side side) const {
    const PooledArray<int32_t>& own =
        side == kLeftSide ? left_ : (side == kRightSide ? right_ : none_);
    return {own.data(), sizes_[side]};
  }

 private:
  PooledArray<int32_t> left_, right_, none_;
  std::array<size_t, 3> sizes_{};  // by side
};

}  // namespace hedgerow
