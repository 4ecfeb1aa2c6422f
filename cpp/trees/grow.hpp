// Growing trees: one for each output, best split first.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "memory_pool.hpp"
#include "parallel.hpp"
#include "trees/column_rules.hpp"
#include "trees/context_examples.hpp"
#include "trees/data.hpp"
#include "trees/examples.hpp"
#include "trees/grown_tree.hpp"
#include "trees/missing.hpp"
#include "trees/split.hpp"

namespace hedgerow {

struct GrowthRules {
  int max_leaves;
  int max_depth;  // of a leaf; a root has depth 0
  double min_child_weight;
  double min_split_gain;
  double reg_lambda;
  double max_step;       // largest absolute value of a leaf, before the learning rate
  double learning_rate;  // every value is multiplied by it
  double colsample_bytree;
  double colsample_bynode;
  double label_lambda = 0.0;  // added to reg_lambda for splits on labels, when they are compared
  MissingRules missing{};
};

// A tree for the examples of each output, with the same splits for two opposite outputs; all
// randomness comes from `key`. Columns may be used as `column_rules` allows, or in any way if it is
// null.
std::vector<GrownTree> grow_trees(const TreeData& data, const Examples& examples,
                                  const GrowthRules& rules, const ColumnRules* column_rules,
                                  uint64_t key, const std::shared_ptr<MemoryPool>& pool,
                                  int n_threads, Stop& stop);

// The same with splits on previous labels: columns n_columns, n_columns + 1 and so on are the
// labels one position before, two positions before and so on, as categories with K bins, and bin 0
// where they are not known. Such splits are always allowed.
std::vector<GrownTree> grow_trees(const TreeData& data, const ContextExamples& examples,
                                  const GrowthRules& rules, const ColumnRules* column_rules,
                                  uint64_t key, const std::shared_ptr<MemoryPool>& pool,
                                  int n_threads, Stop& stop);

}  // namespace hedgerow
