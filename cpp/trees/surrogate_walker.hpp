// The surrogate walker: trees whose splits use surrogates if a value is missing.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "trees/block_walker.hpp"

namespace hedgerow {

// A lane has all bits set where a position is at a node.
class SurrogateMethod {
 public:
  using Lane = int16_t;
  using Values = std::array<Lane, kWalkBlock>;  // leaves, counted from the tree's first node
  static constexpr Lane kAll = -1;

  SurrogateMethod(const TreeArrays& trees, NumberedFeatures& features);

  int32_t feature(int64_t node) const { return features_[node]; }
  Flow divide(int64_t node, BlockBins<Lane>& bins, Lane* here, Lane* left) const;
  void add_leaf(int64_t first, int64_t node, const Lane* here, Values& values) const;
  void divide_into_leaves(int64_t first, int64_t node, BlockBins<Lane>& bins, Lane* here,
                          Values& values) const;
  double value(const Values& values, int64_t first, int64_t i) const {
    return static_cast<double>(arrays_.values[first + static_cast<uint16_t>(values[i])]);
  }

 private:
  void answer_missing(int64_t node, BlockBins<Lane>& bins, Lane* missing, Lane* left) const;

  const TreeArrays& arrays_;
  std::vector<int32_t> features_;            // by node; -1: a leaf
  std::vector<int32_t> surrogate_features_;  // by surrogate
};

using SurrogateWalker = BlockWalker<SurrogateMethod>;

}  // namespace hedgerow
