// Grown trees, node by node.
#pragma once

#include <cstdint>
#include <vector>

#include "trees/forest.hpp"
#include "trees/split.hpp"

namespace hedgerow {

// A surrogate split, for examples whose value is missing at another split.
struct Surrogate {
  int32_t column = -1;
  int32_t offset = 0;
  bool categorical = false;
  bool reversed = false;   // of values: those above `cut` go left
  uint8_t cut = 0;         // of values: the last bin below
  BinSet left_bins{};      // bins that go left
  double association = 0;  // how well it predicts the split, 1: without any error
  bool operator==(const Surrogate&) const = default;
};

// A tree node. Siblings are adjacent, and come after their parent.
struct TreeNode {
  int32_t column = -1;  // -1: a leaf
  int32_t offset = 0;
  bool categorical = false;
  BinSet left_bins{};
  bool outside_left = false;
  int32_t left = -1;  // and left + 1 is the right child
  float value = 0.0f;
  float gain = 0.0f;
  float weight = 0.0f;     // sum of curvatures of its examples
  float fraction = -1.0f;  // share of missing values that goes left, if they go both ways; or -1
  std::vector<Surrogate> surrogates{};  // the best first
  bool operator==(const TreeNode&) const = default;
};

using GrownTree = std::vector<TreeNode>;

// Numbers the nodes as if the youngest had always been split first.
GrownTree renumber(const GrownTree& tree);

// Replaces a node by a branch.
void graft(const GrownTree& branch, int32_t root, GrownTree& tree);

// A tree with the same splits, and values of the opposite sign.
GrownTree negate(GrownTree tree);

// A forest of one round, whose tree i adds to output i with a weight of 1.
Forest build_forest(const std::vector<GrownTree>& trees);

}  // namespace hedgerow
