#include "trees/tree_arrays.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "require.hpp"
#include "trees/data.hpp"

namespace hedgerow {
namespace {

void require_of_tree(bool holds, int64_t tree, const char* what) {
  if (!holds) throw std::invalid_argument("tree " + std::to_string(tree) + ": " + what);
}

void check_lengths(const TreeArrays& trees) {
  require(trees.tree_offsets.size() == trees.outputs.size() + 1, "every tree needs an output");
  const size_t n_nodes = trees.columns.size();
  for (const size_t size : {trees.offsets.size(), trees.cuts.size(), trees.missing_left.size(),
                            trees.outside_left.size(), trees.sets.size(), trees.lefts.size(),
                            trees.values.size(), trees.gains.size(), trees.weights.size()})
    require(size == n_nodes, "arrays of trees must have an entry for each node");
  require(trees.left_sets.size() % kSetBytes == 0, "a set of bins must have 32 bytes");
  require(trees.fractions.empty() || trees.fractions.size() == n_nodes,
          "fractions must have an entry for each node, or none");
}

void check_surrogates(const TreeArrays& trees, int32_t n_columns) {
  const size_t n = trees.surrogate_columns.size();
  for (const size_t size : {trees.surrogate_offsets.size(), trees.surrogate_cuts.size(),
                            trees.surrogate_reversed.size(), trees.surrogate_sets.size()})
    require(size == n, "arrays of surrogates must have an entry for each surrogate");
  const std::vector<int64_t>& starts = trees.surrogate_starts;
  if (starts.empty()) return require(n == 0, "there are surrogates, but no surrogate_starts");
  require(starts.size() == trees.columns.size() + 1 && starts.front() == 0 &&
              starts.back() == trees.n_surrogates() && std::ranges::is_sorted(starts),
          "surrogates do not belong to the nodes one after the other");
  for (size_t i = 0; i < n; ++i) {
    require(trees.surrogate_columns[i] >= 0 && trees.surrogate_columns[i] < n_columns,
            "the column of a surrogate is out of range");
    require(is_offset(trees.surrogate_offsets[i]), "the offset of a surrogate is out of range");
    require(trees.surrogate_sets[i] >= -1 && trees.surrogate_sets[i] < trees.n_sets(),
            "the set of a surrogate is out of range");
  }
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
  int64_t n_found = 1;  // the root, and all children so far
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
    require_of_tree(
        trees.fractions.empty() || (trees.fractions[at] >= 0.0f && trees.fractions[at] <= 1.0f), i,
        "a fraction is not between 0 and 1");
    require_of_tree(is_offset(trees.offsets[at]), i, "an offset is out of range");
    require_of_tree(trees.sets[at] >= -1 && trees.sets[at] < trees.n_sets(), i,
                    "a set of bins is out of range");
    require_of_tree(trees.sets[at] >= 0 || trees.cuts[at] >= 1 || trees.missing_left[at], i,
                    "a split has nothing on its left");
    const int64_t left = trees.lefts[at];
    require_of_tree(left > n && left + 1 < n_nodes, i, "children do not come after their parent");
    require_of_tree(!is_child[left] && !is_child[left + 1], i, "a node has two parents");
    is_child[left] = is_child[left + 1] = 1;
    n_found += 2;
  }
  require_of_tree(n_found == n_nodes, i, "a node has no parent");
}

template <class T>
void append(std::vector<T>& values, const std::vector<T>& more) {
  values.insert(values.end(), more.begin(), more.end());
}

// Appends `more` without its first number, shifted so that they continue from the last one.
void append_offsets(std::vector<int64_t>& offsets, const std::vector<int64_t>& more) {
  const int64_t last = offsets.back();
  for (size_t i = 1; i < more.size(); ++i) offsets.push_back(last + more[i]);
}

bool are_equal_sets(const TreeArrays& trees, int64_t a, int64_t b) {
  if (a < 0 || b < 0) return a == b;
  const uint8_t* sets = trees.left_sets.data();
  return std::equal(sets + a * kSetBytes, sets + (a + 1) * kSetBytes, sets + b * kSetBytes);
}

// Whether n nodes from `first` on have the same surrogates as the n nodes before them.
bool repeats_surrogates(const TreeArrays& trees, int64_t first, int64_t n) {
  const std::vector<int64_t>& starts = trees.surrogate_starts;
  const int64_t shift = starts[first] - starts[first - n];
  for (int64_t node = first; node < first + n; ++node)
    if (starts[node + 1] - starts[node + 1 - n] != shift) return false;
  for (int64_t i = starts[first]; i < starts[first + n]; ++i) {
    const auto repeats = [&](const auto& array) { return array[i] == array[i - shift]; };
    if (!(repeats(trees.surrogate_columns) && repeats(trees.surrogate_offsets) &&
          repeats(trees.surrogate_cuts) && repeats(trees.surrogate_reversed) &&
          are_equal_sets(trees, trees.surrogate_sets[i], trees.surrogate_sets[i - shift])))
      return false;
  }
  return true;
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
        repeats(trees.missing_left) && repeats(trees.outside_left) && repeats(trees.lefts) &&
        (trees.fractions.empty() || repeats(trees.fractions))))
    return false;
  for (int64_t node = first; node < first + n; ++node)
    if (!are_equal_sets(trees, trees.sets[node], trees.sets[node - n])) return false;
  return trees.surrogate_starts.empty() || repeats_surrogates(trees, first, n);
}

bool is_opposite(const TreeArrays& trees, int64_t tree) {
  if (!repeats_splits(trees, tree)) return false;
  const auto first = trees.values.begin() + trees.tree_offsets[tree];
  const auto before = trees.values.begin() + trees.tree_offsets[tree - 1];
  return std::equal(before, first, first, [](float a, float b) { return a == -b; });
}

void append_node(const TreeArrays& from, int64_t node, int32_t left, TreeArrays& to) {
  // Copies a set, and returns where it is.
  const auto copy_set = [&](int64_t set) {
    if (set < 0) return -1;
    to.left_sets.insert(to.left_sets.end(), from.left_sets.begin() + set * kSetBytes,
                        from.left_sets.begin() + (set + 1) * kSetBytes);
    return static_cast<int32_t>(to.n_sets()) - 1;
  };
  to.columns.push_back(from.columns[node]);
  to.offsets.push_back(from.offsets[node]);
  to.cuts.push_back(from.cuts[node]);
  to.missing_left.push_back(from.missing_left[node]);
  to.outside_left.push_back(from.outside_left[node]);
  to.sets.push_back(copy_set(from.sets[node]));
  to.lefts.push_back(left);
  to.values.push_back(from.values[node]);
  to.gains.push_back(from.gains[node]);
  to.weights.push_back(from.weights[node]);
  if (!from.fractions.empty()) to.fractions.push_back(from.fractions[node]);
  if (from.surrogate_starts.empty()) return;
  if (to.surrogate_starts.empty()) to.surrogate_starts.push_back(0);
  for (int64_t i = from.surrogate_starts[node]; i < from.surrogate_starts[node + 1]; ++i) {
    to.surrogate_columns.push_back(from.surrogate_columns[i]);
    to.surrogate_offsets.push_back(from.surrogate_offsets[i]);
    to.surrogate_cuts.push_back(from.surrogate_cuts[i]);
    to.surrogate_reversed.push_back(from.surrogate_reversed[i]);
    to.surrogate_sets.push_back(copy_set(from.surrogate_sets[i]));
  }
  to.surrogate_starts.push_back(to.n_surrogates());
}

void append(TreeArrays& trees, const TreeArrays& more) {
  const auto n_sets = static_cast<int32_t>(trees.n_sets());
  const auto append_sets = [n_sets](std::vector<int32_t>& sets, const std::vector<int32_t>& added) {
    for (const int32_t set : added) sets.push_back(set < 0 ? set : set + n_sets);
  };
  const auto complete = [&](bool has_fractions, bool has_surrogates) {
    if (has_fractions) trees.fractions.resize(trees.columns.size(), 0.0f);
    if (has_surrogates)
      trees.surrogate_starts.resize(trees.columns.size() + 1, trees.n_surrogates());
  };
  // Nodes of trees without any have fractions of 0, and no surrogates.
  complete(!more.fractions.empty(), !more.surrogate_starts.empty());
  append(trees.fractions, more.fractions);
  if (!more.surrogate_starts.empty()) append_offsets(trees.surrogate_starts, more.surrogate_starts);
  append(trees.surrogate_columns, more.surrogate_columns);
  append(trees.surrogate_offsets, more.surrogate_offsets);
  append(trees.surrogate_cuts, more.surrogate_cuts);
  append(trees.surrogate_reversed, more.surrogate_reversed);
  append_sets(trees.surrogate_sets, more.surrogate_sets);
  append_offsets(trees.round_offsets, more.round_offsets);
  append_offsets(trees.tree_offsets, more.tree_offsets);
  append(trees.outputs, more.outputs);
  append(trees.columns, more.columns);
  append(trees.offsets, more.offsets);
  append(trees.cuts, more.cuts);
  append(trees.missing_left, more.missing_left);
  append(trees.outside_left, more.outside_left);
  append_sets(trees.sets, more.sets);
  append(trees.lefts, more.lefts);
  append(trees.values, more.values);
  append(trees.gains, more.gains);
  append(trees.weights, more.weights);
  append(trees.left_sets, more.left_sets);
  complete(!trees.fractions.empty(), !trees.surrogate_starts.empty());
}

void check_trees(const TreeArrays& trees, int n_outputs, int32_t n_columns) {
  check_lengths(trees);
  check_offsets(trees);
  check_surrogates(trees, n_columns);
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
