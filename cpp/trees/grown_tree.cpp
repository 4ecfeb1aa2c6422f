#include "trees/grown_tree.hpp"

#include <algorithm>
#include <utility>

namespace hedgerow {
namespace {

// The last bin that a split of values has on its left.
uint8_t last_bin(const BinSet& set) {
  for (int bin = 255; bin > 0; --bin)
    if (contains(set, static_cast<uint8_t>(bin))) return static_cast<uint8_t>(bin);
  return 0;
}

void append_node(const TreeNode& node, TreeArrays& out) {
  const bool has_set = node.column >= 0 && node.categorical;
  out.columns.push_back(node.column);
  out.offsets.push_back(node.offset);
  out.cuts.push_back(has_set ? uint8_t{0} : last_bin(node.left_bins));
  out.missing_left.push_back(contains(node.left_bins, 0));
  out.sets.push_back(has_set ? static_cast<int32_t>(out.n_sets()) : -1);
  out.lefts.push_back(node.left);
  out.values.push_back(node.value);
  out.gains.push_back(node.gain);
  out.weights.push_back(node.weight);
  if (!has_set) return;
  for (const uint64_t word : node.left_bins)
    for (int byte = 0; byte < 8; ++byte)
      out.left_sets.push_back(static_cast<uint8_t>(word >> (8 * byte)));
}

}  // namespace

GrownTree renumber(const GrownTree& tree) {
  GrownTree out{tree[0]};
  out.reserve(tree.size());
  std::vector<int32_t> open{0};  // numbers in `out`, rising
  while (!open.empty()) {
    const int32_t node = open.back();
    open.pop_back();
    if (out[node].column < 0) continue;
    const int32_t left = std::exchange(out[node].left, static_cast<int32_t>(out.size()));
    for (const int32_t child : {left, left + 1}) {
      open.push_back(static_cast<int32_t>(out.size()));
      out.push_back(tree[child]);
    }
  }
  return out;
}

void graft(const GrownTree& branch, int32_t root, GrownTree& tree) {
  const auto shift = static_cast<int32_t>(tree.size()) - 1;
  tree[root] = branch[0];
  tree.insert(tree.end(), branch.begin() + 1, branch.end());
  const auto move = [shift](TreeNode& node) {
    if (node.column >= 0) node.left += shift;
  };
  move(tree[root]);
  std::for_each(tree.end() - (std::ssize(branch) - 1), tree.end(), move);
}

GrownTree negate(GrownTree tree) {
  for (TreeNode& node : tree) node.value = -node.value;
  return tree;
}

Forest build_forest(const std::vector<GrownTree>& trees) {
  TreeArrays arrays;
  for (const GrownTree& tree : trees) {
    for (const TreeNode& node : tree) append_node(node, arrays);
    arrays.outputs.push_back(static_cast<int32_t>(arrays.outputs.size()));
    arrays.tree_offsets.push_back(arrays.n_nodes());
  }
  arrays.round_offsets.push_back(arrays.n_trees());
  return Forest(static_cast<int>(trees.size()), std::move(arrays),
                std::vector<double>(trees.size(), 1.0));
}

}  // namespace hedgerow
