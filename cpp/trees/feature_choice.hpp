// The features that the nodes of a tree may use.
#pragma once

#include <cstdint>
#include <vector>

#include "trees/column_rules.hpp"
#include "trees/data.hpp"
#include "trees/growing_tree.hpp"

namespace hedgerow {

// Features are sampled at random, subject to column rules. Each thread has its own FeatureChoice.
// Every feature is marked by a byte, by column and offset, that is 0 if it may not be used.
class FeatureChoice {
 public:
  // The shares of the features that are drawn for a tree and for a node; null rules allow any
  // column.
  FeatureChoice(const TreeData& data, const ColumnRules* rules, double share_of_tree,
                double share_of_node)
      : data_(data), rules_(rules), share_of_tree_(share_of_tree), share_of_node_(share_of_node) {}

  // Those of the tree of an output; empty: all.
  std::vector<uint8_t> of_tree(int output, uint64_t key) const;
  // Whether all nodes of a tree may be split on the same features, so that threads may share it.
  bool is_of_tree() const;
  // Those that a node may be split on; null: all. Valid until the next call.
  const uint8_t* of_node(const GrowingTree& tree, const OpenNode& node);
  // Those that may be surrogates for the split of a node, whose column counts as part of the
  // branch.
  const uint8_t* of_surrogates(const GrowingTree& tree, const OpenNode& parent);
  // The columns of the branch below a split on a column of X; empty where they do not matter.
  std::vector<int32_t> branch_below(const OpenNode& parent) const;

 private:
  void fill_branch_features(const GrowingTree& tree, const std::vector<int32_t>& branch);

  const TreeData& data_;
  const ColumnRules* rules_;
  double share_of_tree_, share_of_node_;
  std::vector<uint8_t> branch_features_;
  std::vector<uint8_t> node_features_;
};

}  // namespace hedgerow
