// The fraction walker: trees whose splits send missing values both ways.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "simd.hpp"
#include "trees/block_walker.hpp"

namespace hedgerow {

// Every node has a list of the positions that come to it, with the share of each that does. A tree
// adds the values of all leaves that a position reaches, each times its share, from left to right.
class FractionMethod {
 public:
  static constexpr int64_t kBlock = kLowLimits ? 64 : 512;
  class Walk;

  FractionMethod(const TreeArrays& trees, NumberedFeatures& features);

 private:
  const TreeArrays& arrays_;
  std::vector<int32_t> features_;  // by node; -1: a leaf
};

class FractionMethod::Walk {
 public:
  explicit Walk(const FractionMethod& method) : method_(method) {}

  void run(int64_t first, int64_t n, BlockBins<kBlock>& bins);
  double value(int64_t i) const { return values_[i]; }

 private:
  // A node, the positions of the block that come to it, and how much of each.
  struct List {
    int64_t node, n;
    std::array<uint16_t, kBlock> positions;
    std::array<double, kBlock> shares;
  };
  struct Question;

  Question ask(int64_t node, BlockBins<kBlock>& bins) const;
  static void divide(Question question, List& here, List& left);
  void add_leaf(const List& here, double value);
  void add_leaves(Question question, const List& here, const float* values);

  const FractionMethod& method_;
  std::vector<List> open_;             // nodes still to be walked, the next one last
  std::array<double, kBlock> values_;  // what the leaves so far add
};

using FractionWalker = BlockWalker<FractionMethod>;

}  // namespace hedgerow
