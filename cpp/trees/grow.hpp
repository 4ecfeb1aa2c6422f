// Growing trees: one for each output, best split first.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "memory_pool.hpp"
#include "parallel.hpp"
#include "trees/column_rules.hpp"
#include "trees/data.hpp"
#include "trees/examples.hpp"
#include "trees/forest.hpp"
#include "trees/split.hpp"

namespace hedgerow {

struct GrowthRules {
  int max_leaves;
  int max_depth;  // of a leaf; a root has depth 0
  double min_child_weight;
  double min_split_gain;
  double reg_lambda;
  double max_step;       // no leaf moves a score by more, before the learning rate
  double learning_rate;  // every value is multiplied by it
  double colsample_bytree;
  double colsample_bynode;
};

// A tree node. Children come after their parent and side by side.
struct TreeNode {
  int32_t column = -1;  // -1: a leaf
  int32_t offset = 0;
  bool categorical = false;
  BinSet left_bins{};
  int32_t left = -1;  // and left + 1 is the right child
  float value = 0.0f;
  float gain = 0.0f;
  float weight = 0.0f;  // sum of curvatures of its examples
  bool operator==(const TreeNode&) const = default;
};

using GrownTree = std::vector<TreeNode>;

// A tree for the examples of each output, of the same splits for two that are opposite; all
// randomness comes from `key`. Columns may be used as `column_rules` says, or in any way if it is
// null.
std::vector<GrownTree> grow_trees(const TreeData& data, const Examples& examples,
                                  const GrowthRules& rules, const ColumnRules* column_rules,
                                  uint64_t key, const std::shared_ptr<MemoryPool>& pool,
                                  int n_threads, Stop& stop);

// A forest of one round, whose tree i adds to output i with a weight of 1.
Forest build_forest(const std::vector<GrownTree>& trees);

}  // namespace hedgerow
