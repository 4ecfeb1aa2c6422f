// The fraction walker: trees whose splits send missing values both ways.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "trees/block_walker.hpp"

namespace hedgerow {

// A lane is the share of a position that is at a node. A tree adds the values of all leaves that a
// position reaches, each times its share, from left to right.
class FractionMethod {
 public:
  using Lane = double;
  using Values = std::array<double, kWalkBlock>;
  static constexpr Lane kAll = 1.0;

  FractionMethod(const TreeArrays& trees, NumberedFeatures& features);

  int32_t feature(int64_t node) const { return features_[node]; }
  Flow divide(int64_t node, BlockBins<Lane>& bins, Lane* here, Lane* left) const;
  void add_leaf(int64_t first, int64_t node, const Lane* here, Values& values) const;
  void divide_into_leaves(int64_t first, int64_t node, BlockBins<Lane>& bins, const Lane* here,
                          Values& values) const;
  double value(const Values& values, int64_t, int64_t i) const { return values[i]; }

 private:
  // Bins up to `cut` go left.
  struct Question {
    const Lane* bins;
    Lane cut;
    Lane of_missing;  // share that goes left
  };
  Question ask(int64_t node, BlockBins<Lane>& bins) const;

  const TreeArrays& arrays_;
  std::vector<int32_t> features_;  // by node; -1: a leaf
};

using FractionWalker = BlockWalker<FractionMethod>;

}  // namespace hedgerow
