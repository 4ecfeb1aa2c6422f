#include "trees/grown_tree.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace hedgerow {
namespace {

// The last bin that a split of values has on its left.
uint8_t last_bin(const BinSet& set) {
  for (int word = 3; word >= 0; --word)
    if (set[word] != 0) return static_cast<uint8_t>(64 * word + std::bit_width(set[word]) - 1);
  return 0;
}

// Returns where the set is.
int32_t append_set(const BinSet& set, TreeArrays& out) {
  for (const uint64_t word : set)
    for (int byte = 0; byte < 8; ++byte)
      out.left_sets.push_back(static_cast<uint8_t>(word >> (8 * byte)));
  return static_cast<int32_t>(out.n_sets()) - 1;
}

void append_surrogates(const TreeNode& node, TreeArrays& out) {
  for (const Surrogate& surrogate : node.surrogates) {
    out.surrogate_columns.push_back(surrogate.column);
    out.surrogate_offsets.push_back(surrogate.offset);
    out.surrogate_cuts.push_back(surrogate.cut);
    out.surrogate_reversed.push_back(surrogate.reversed);
    out.surrogate_sets.push_back(surrogate.categorical ? append_set(surrogate.left_bins, out) : -1);
  }
  out.surrogate_starts.push_back(out.n_surrogates());
}

void append_node(const TreeNode& node, TreeArrays& out) {
  const bool has_set = node.column >= 0 && node.categorical;
  out.columns.push_back(node.column);
  out.offsets.push_back(node.offset);
  out.cuts.push_back(has_set ? uint8_t{0} : last_bin(node.left_bins));
  out.missing_left.push_back(contains(node.left_bins, 0));
  out.outside_left.push_back(node.outside_left);
  out.sets.push_back(has_set ? append_set(node.left_bins, out) : -1);
  out.lefts.push_back(node.left);
  out.values.push_back(node.value);
  out.gains.push_back(node.gain);
  out.weights.push_back(node.weight);
}

template <class Has>
bool has_any(const std::vector<GrownTree>& trees, Has has) {
  return std::ranges::any_of(trees,
                             [&](const GrownTree& tree) { return std::ranges::any_of(tree, has); });
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
  const bool has_fractions =
      has_any(trees, [](const TreeNode& node) { return node.fraction >= 0.0f; });
  const bool has_surrogates =
      has_any(trees, [](const TreeNode& node) { return !node.surrogates.empty(); });
  TreeArrays arrays;
  size_t n_nodes = 0;
  for (const GrownTree& tree : trees) n_nodes += tree.size();
  arrays.reserve_nodes(n_nodes);
  if (has_surrogates) arrays.surrogate_starts.push_back(0);
  for (const GrownTree& tree : trees) {
    for (const TreeNode& node : tree) {
      append_node(node, arrays);
      if (has_fractions) arrays.fractions.push_back(std::max(node.fraction, 0.0f));
      if (has_surrogates) append_surrogates(node, arrays);
    }
    arrays.outputs.push_back(static_cast<int32_t>(arrays.outputs.size()));
    arrays.tree_offsets.push_back(arrays.n_nodes());
  }
  arrays.round_offsets.push_back(arrays.n_trees());
  return Forest(static_cast<int>(trees.size()), std::move(arrays),
                std::vector<double>(trees.size(), 1.0));
}

}  // namespace hedgerow
