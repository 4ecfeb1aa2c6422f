// Splits: where to cut the examples of a tree node in two.
#pragma once

#include <array>
#include <cstdint>

#include "trees/histogram.hpp"

namespace hedgerow {

// Which bins go to the left, one bit each.
using BinSet = std::array<uint64_t, 4>;
inline bool contains(const BinSet& set, uint8_t bin) { return (set[bin >> 6] >> (bin & 63)) & 1; }

struct Split {
  double gain = 0.0;  // 0: no split
  int32_t column = -1;
  int32_t offset = 0;
  bool categorical = false;
  BinSet left_bins{};
  Sum left;  // what the examples on the left add up to

  bool exists() const { return column >= 0; }
};

struct SplitRules {
  double reg_lambda;
  double min_child_weight;
  double min_split_gain;
  double gradient_unit;   // what an Example's gradient of 1 stands for
  double curvature_unit;  // and its curvature
};

// The split of the largest gain, G_L^2 / (H_L + lambda) + G_R^2 / (H_R + lambda) - G^2 / (H +
// lambda), over all features, bins and directions of missing values; among equals that of the first
// column, offset and bin. Bins of categories are cut in order of their gradient. `features` has a
// byte for each feature, by column and offset, that is 0 if it may not be used; null: all may.
Split find_split(const TreeData& data, const Histogram& histogram, const Sum& total,
                 const SplitRules& rules, const uint8_t* features);

}  // namespace hedgerow
