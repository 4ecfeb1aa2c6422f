// The fraction walker: trees whose splits send missing values both ways.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "simd.hpp"
#include "trees/block_walker.hpp"

namespace hedgerow {

// What a node adds is what its left or its right child adds, and where the value is missing a
// mixture of both. Trees of few leaves are evaluated like that from their leaves to the root, each
// node for all positions of a block at once. In other trees every node has a list of the positions
// that come to it, with the share of each that does: they add the values of all leaves that a
// position reaches, each times its share, from left to right.
class FractionMethod {
 public:
  static constexpr int64_t kBlock = kLowLimits ? 64 : 128;
  class Walk;

  FractionMethod(const TreeArrays& trees, NumberedFeatures& features);

 private:
  struct Question;

  static void choose(const Question& question, const double* right, double* left);
  static void choose_leaves(const Question& question, const float* values, double* out);

  const TreeArrays& arrays_;
  std::vector<uint8_t> is_dense_;  // by node: whether a tree begins here that is evaluated whole
  std::vector<int32_t> features_;  // by node; -1: a leaf
};

class FractionMethod::Walk {
 public:
  explicit Walk(const FractionMethod& method) : method_(method) {}

  void run(int64_t first, int64_t n, BlockBins<kBlock>& bins);
  double value(int64_t i) const { return rows_[0][i]; }

 private:
  // A node, the positions of the block that come to it, and how much of each.
  struct List {
    int64_t node, n;
    std::array<uint16_t, kBlock> positions;
    std::array<double, kBlock> shares;
  };

  Question ask(int64_t node, BlockBins<kBlock>& bins) const;
  static void divide(Question question, List& here, List& left);
  void fill_values(int64_t first, int64_t node, size_t row, BlockBins<kBlock>& bins);
  void add_lists(int64_t first, int64_t n, BlockBins<kBlock>& bins);
  void add_leaf(const List& here, double value);
  void add_leaves(Question question, const List& here, const float* values);

  const FractionMethod& method_;
  std::vector<List> open_;  // nodes still to be walked, the next one last
  // What nodes add, by position: in the end the first row has what the tree does.
  std::vector<std::array<double, kBlock>> rows_ = std::vector<std::array<double, kBlock>>(1);
};

using FractionWalker = BlockWalker<FractionMethod>;

}  // namespace hedgerow
