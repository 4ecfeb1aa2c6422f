// The surrogate walker: trees whose splits use surrogates if a value is missing.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "trees/block_walker.hpp"

namespace hedgerow {

// A block of positions goes down a tree together: at a node, the lanes of those that come to it
// have all bits set.
class SurrogateMethod {
 public:
  static constexpr int64_t kBlock = kWalkBlock;
  class Walk;

  SurrogateMethod(const TreeArrays& trees, NumberedFeatures& features);

 private:
  const TreeArrays& arrays_;
  std::vector<int32_t> features_;            // by node; -1: a leaf
  std::vector<int32_t> surrogate_features_;  // by surrogate
};

class SurrogateMethod::Walk {
 public:
  explicit Walk(const SurrogateMethod& method) : method_(method) {}

  void run(int64_t first, int64_t n, BlockBins<kBlock>& bins);
  double value(int64_t i) const {
    return static_cast<double>(method_.arrays_.values[first_ + static_cast<uint16_t>(leaves_[i])]);
  }

 private:
  using Lane = int16_t;
  // Whether any positions go left at a split, and right.
  struct Flow {
    bool left, right;
  };

  void split(int64_t node, BlockBins<kBlock>& bins, Lane* here, Lane* left);
  Flow divide(int64_t node, BlockBins<kBlock>& bins, Lane* here, Lane* left) const;
  void answer_missing(int64_t node, BlockBins<kBlock>& bins, Lane* missing, Lane* left) const;
  void move_outside(int64_t node, const BlockBins<kBlock>& bins, Lane* here, Lane* left,
                    Flow& flow) const;

  const SurrogateMethod& method_;
  int64_t first_ = 0;                // node of the tree
  std::vector<int64_t> open_;        // nodes still to be walked
  std::vector<Lane> lanes_;          // (n_open, kBlock)
  std::array<Lane, kBlock> leaves_;  // that positions have come to, counted from the first node
};

using SurrogateWalker = BlockWalker<SurrogateMethod>;

}  // namespace hedgerow
