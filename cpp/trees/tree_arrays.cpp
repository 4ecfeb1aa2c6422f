#include "trees/tree_arrays.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <stdexcept>
#include <string>

#include "require.hpp"

namespace hedgerow {
namespace {

void require_of_tree(bool holds, int64_t tree, const char* what) {
  if (!holds) throw std::invalid_argument("tree " + std::to_string(tree) + ": " + what);
}

void check_lengths(const TreeArrays& trees) {
  require(trees.tree_offsets.size() == trees.outputs.size() + 1, "every tree needs an output");
  const size_t n_nodes = trees.columns.size();
  for (const size_t size :
       {trees.offsets.size(), trees.cuts.size(), trees.missing_left.size(), trees.sets.size(),
        trees.lefts.size(), trees.values.size(), trees.gains.size(), trees.weights.size()})
    require(size == n_nodes, "arrays of trees must have an entry for each node");
  require(trees.left_sets.size() % kSetBytes == 0, "a set of bins has 32 bytes");
}

void check_offsets(const TreeArrays& trees) {
  const std::vector<int64_t>& rounds = trees.round_offsets;
  require(!rounds.empty() && rounds.front() == 0 && rounds.back() == trees.n_trees(),
          "rounds do not begin at 0 and end at the number of trees");
  for (size_t r = 1; r < rounds.size(); ++r)
    require(rounds[r - 1] <= rounds[r], "a round ends before it begins");
  require(trees.tree_offsets.front() == 0 && trees.tree_offsets.back() == trees.n_nodes(),
          "trees do not begin at 0 and end at the number of nodes");
}

void check_tree(const TreeArrays& trees, int64_t i, int32_t n_columns) {
  const int64_t first = trees.tree_offsets[i], n_nodes = trees.tree_offsets[i + 1] - first;
  int64_t next = 1;  // children are numbered as they come
  std::vector<uint8_t> is_child(n_nodes, 0);
  for (int64_t n = 0; n < n_nodes; ++n) {
    const int64_t at = first + n;
    require_of_tree(std::isfinite(trees.values[at]) && std::isfinite(trees.gains[at]) &&
                        std::isfinite(trees.weights[at]),
                    i, "a value is not finite");
    require_of_tree(n == 0 || is_child[n], i, "a node has no parent");
    require_of_tree(trees.columns[at] >= -1, i, "a column is below -1");
    if (trees.columns[at] < 0) continue;
    require_of_tree(trees.columns[at] < n_columns, i, "a column is out of range");
    require_of_tree(trees.offsets[at] >= -255 && trees.offsets[at] <= 255, i,
                    "an offset is out of range");
    require_of_tree(trees.sets[at] >= -1 && trees.sets[at] < trees.n_sets(), i,
                    "a set of bins is out of range");
    require_of_tree(trees.sets[at] >= 0 || trees.cuts[at] >= 1 || trees.missing_left[at], i,
                    "a split has nothing on its left");
    const int64_t left = trees.lefts[at];
    require_of_tree(left > n && left + 1 < n_nodes, i, "children do not come after their parent");
    require_of_tree(!is_child[left] && !is_child[left + 1], i, "a node has two parents");
    is_child[left] = is_child[left + 1] = 1;
    next += 2;
  }
  require_of_tree(next == n_nodes, i, "a node has no parent");
}

template <class T>
void append(std::vector<T>& values, const std::vector<T>& more) {
  values.insert(values.end(), more.begin(), more.end());
}

// Those of `more`, without their first, behind the last.
void append_offsets(std::vector<int64_t>& offsets, const std::vector<int64_t>& more) {
  const int64_t last = offsets.back();
  for (size_t i = 1; i < more.size(); ++i) offsets.push_back(last + more[i]);
}

}  // namespace

bool repeats_splits(const TreeArrays& trees, int64_t tree) {
  if (tree == 0) return false;
  const int64_t first = trees.tree_offsets[tree], n = trees.tree_offsets[tree + 1] - first;
  const int64_t before = trees.tree_offsets[tree - 1];
  if (first - before != n) return false;
  const auto repeats = [&](const auto& array) {
    return std::equal(array.begin() + before, array.begin() + first, array.begin() + first);
  };
  if (!(repeats(trees.columns) && repeats(trees.offsets) && repeats(trees.cuts) &&
        repeats(trees.missing_left) && repeats(trees.lefts)))
    return false;
  const auto set_of = [&](int64_t node) {
    const int64_t row = trees.sets[node];
    return std::span(trees.left_sets)
        .subspan(row < 0 ? 0 : row * kSetBytes, row < 0 ? 0 : kSetBytes);
  };
  for (int64_t node = first; node < first + n; ++node)
    if (!std::ranges::equal(set_of(node), set_of(node - n))) return false;
  return true;
}

void append(TreeArrays& trees, const TreeArrays& more) {
  const auto n_sets = static_cast<int32_t>(trees.n_sets());
  append_offsets(trees.round_offsets, more.round_offsets);
  append_offsets(trees.tree_offsets, more.tree_offsets);
  append(trees.outputs, more.outputs);
  append(trees.columns, more.columns);
  append(trees.offsets, more.offsets);
  append(trees.cuts, more.cuts);
  append(trees.missing_left, more.missing_left);
  for (const int32_t set : more.sets) trees.sets.push_back(set < 0 ? set : set + n_sets);
  append(trees.lefts, more.lefts);
  append(trees.values, more.values);
  append(trees.gains, more.gains);
  append(trees.weights, more.weights);
  append(trees.left_sets, more.left_sets);
}

void check_trees(const TreeArrays& trees, int n_outputs, int32_t n_columns) {
  check_lengths(trees);
  check_offsets(trees);
  for (int64_t i = 0; i < trees.n_trees(); ++i) {
    const int64_t first = trees.tree_offsets[i], end = trees.tree_offsets[i + 1];
    require_of_tree(first >= 0 && first < end && end <= trees.n_nodes(), i, "it has no nodes");
    require_of_tree(end - first <= kMaxTreeNodes, i, "it has too many nodes");
    require_of_tree(trees.outputs[i] >= 0 && trees.outputs[i] < n_outputs, i,
                    "its output is out of range");
    check_tree(trees, i, n_columns);
  }
}

}  // namespace hedgerow
