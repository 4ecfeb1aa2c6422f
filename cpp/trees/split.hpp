// Splits: dividing the examples of a tree node into two.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>

#include "trees/column_rules.hpp"
#include "trees/context_rows.hpp"
#include "trees/data.hpp"
#include "trees/histogram.hpp"
#include "trees/missing.hpp"

namespace hedgerow {

// Which bins go to the left, one bit each.
using BinSet = std::array<uint64_t, 4>;
inline bool contains(const BinSet& set, uint8_t bin) { return (set[bin >> 6] >> (bin & 63)) & 1; }
inline void insert(BinSet& set, int bin) { set[bin >> 6] |= uint64_t{1} << (bin & 63); }
inline void erase(BinSet& set, int bin) { set[bin >> 6] &= ~(uint64_t{1} << (bin & 63)); }

struct Split {
  double gain = 0.0;  // 0: no split
  int32_t column = -1;
  int32_t offset = 0;
  bool categorical = false;
  BinSet left_bins{};
  bool outside_left = false;  // whether positions beyond the ends of a sequence go left
  WideSum left;               // sum of the examples on the left
  WideSum known;  // of those that it was found by: all, or those whose value is not missing

  bool exists() const { return column >= 0; }
};

struct SplitRules {
  double reg_lambda;
  double min_child_weight;
  double min_split_gain;
  double gradient_unit;   // the gradient that a 1 in a Sum stands for
  double curvature_unit;  // likewise
  const MissingRules* missing;
};

// The contexts of a node's examples, for trees that split on them.
struct NodeContexts {
  const ContextRows* rows;
  std::span<const int32_t> contexts;
  double more_lambda;  // for splits on labels, which overfit since there are many ways to cut
};

// Steps that the leaves below a node may take.
struct StepBounds {
  double lower = -std::numeric_limits<double>::infinity();
  double upper = std::numeric_limits<double>::infinity();

  double clamp(double step) const { return std::clamp(step, lower, upper); }
};

// Monotone constraints: steps of a node within bounds, and children in order.
struct MonotoneRules {
  const int8_t* directions;  // (n_columns,) of type ColumnDirection
  int32_t n_columns;
  StepBounds bounds;

  // Previous labels are not columns of X.
  int8_t direction(int32_t column) const {
    return column < n_columns ? directions[column] : int8_t{kAnyWay};
  }
};

// The split of the largest gain, G_L^2 / (H_L + lambda) + G_R^2 / (H_R + lambda) - G^2 / (H +
// lambda), over all features, bins, directions of missing values and directions of what lies beyond
// the ends of a sequence; among equals that of the first column, offset and bin. Bins of categories
// are cut in order of the steps they would take as leaves. `features` has a byte for each feature,
// by column and offset, that is 0 if it may not be used; null: all may.
//
// With monotone rules a step w that is out of bounds counts as the nearest one within, which gains
// -w (2 G + (H + lambda) w), and splits whose children would be in the wrong order are left out.
// Missing values are treated by their rules. Where splits are found by known values alone, the sums
// above are of these; with kFractional, the minimum weight of a child is multiplied by their share
// of the total weight.
//
// `contexts` is null if splits on previous labels are not allowed. Idle threads of the crew help.
Split find_split(const TreeData& data, const Histogram& histogram, const WideSum& total,
                 const SplitRules& rules, const uint8_t* features, const MonotoneRules* monotone,
                 const NodeContexts* contexts, Crew& crew);

}  // namespace hedgerow
