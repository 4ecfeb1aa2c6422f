// Trees as flat arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hedgerow {

inline constexpr int kMaxTreeNodes = 1 << 16;
inline constexpr int kSetBytes = 32;  // of a set of bins, one bit for each bin

// T trees, grown in R rounds. Node n of tree i is entry tree_offsets[i] + n of the arrays over
// nodes. Siblings are adjacent, and come after their parent.
struct TreeArrays {
  std::vector<int64_t> round_offsets{0};  // (R + 1,) round r has trees [r] to [r + 1] - 1
  std::vector<int64_t> tree_offsets{0};   // (T + 1,)
  std::vector<int32_t> outputs;           // (T,) the output whose score a tree adds to
  // By node:
  std::vector<int32_t> columns;       // column of a split, -1 for a leaf
  std::vector<int32_t> offsets;       // where the column is read, see kParent
  std::vector<uint8_t> cuts;          // bins 1 to this one go left; 0 with a set
  std::vector<uint8_t> missing_left;  // whether bin 0 does, without a set
  std::vector<uint8_t> outside_left;  // whether positions beyond the ends of a sequence do
  std::vector<int32_t> sets;          // row of left_sets of a categorical split, else -1
  std::vector<int32_t> lefts;         // left child, counted from the tree's first node
  std::vector<float> values;          // what a leaf adds; of a split what it would add as a leaf
  std::vector<float> gains;           // of splits
  std::vector<float> weights;         // sum of the curvatures of a node's examples
  // For splits that send missing values both ways: the share that goes left; empty if there are
  // none.
  std::vector<float> fractions;
  // Surrogates, splits that are used where a value is missing, best first: those of node n are
  // entries surrogate_starts[n] to surrogate_starts[n + 1] - 1 of the arrays below. Empty if no
  // split has any.
  std::vector<int64_t> surrogate_starts;
  std::vector<int32_t> surrogate_columns;
  std::vector<int32_t> surrogate_offsets;
  std::vector<uint8_t> surrogate_cuts;      // bins 1 to this one go left; 0 with a set
  std::vector<uint8_t> surrogate_reversed;  // these bins go right, and all others left
  std::vector<int32_t> surrogate_sets;      // row of left_sets, or -1
  // (n_sets, kSetBytes) a bit for each bin that goes left.
  std::vector<uint8_t> left_sets;

  int64_t n_trees() const { return static_cast<int64_t>(outputs.size()); }
  int64_t n_nodes() const { return static_cast<int64_t>(columns.size()); }
  int64_t n_surrogates() const { return static_cast<int64_t>(surrogate_columns.size()); }
  // Whether any split does more with missing values than send them in one direction.
  bool asks_more_of_missing() const { return !fractions.empty() || !surrogate_columns.empty(); }
  int64_t n_sets() const { return static_cast<int64_t>(left_sets.size()) / kSetBytes; }
  void reserve_nodes(size_t n) {
    for (auto* array : {&columns, &offsets, &sets, &lefts}) array->reserve(n);
    for (auto* array : {&cuts, &missing_left, &outside_left}) array->reserve(n);
    for (auto* array : {&values, &gains, &weights}) array->reserve(n);
  }
  // Whether no tree has more than n_leaves leaves; a tree with n leaves has n - 1 splits.
  bool have_at_most(int64_t n_leaves) const {
    for (int64_t i = 0; i < n_trees(); ++i)
      if (tree_offsets[i + 1] - tree_offsets[i] > 2 * n_leaves - 1) return false;
    return true;
  }
};

// The test of a split without a set: a bin goes left if bin - shift, as a byte, is at most `limit`.
// With a shift of 1 missing values wrap around and go right.
struct BinTest {
  uint8_t limit;
  uint8_t shift;

  bool goes_left(uint8_t bin) const { return static_cast<uint8_t>(bin - shift) <= limit; }
};

inline BinTest bin_test(const TreeArrays& trees, int64_t node) {
  const uint8_t shift = trees.missing_left[node] ? 0 : 1;
  return {static_cast<uint8_t>(trees.cuts[node] - shift), shift};
}

inline bool contains(const TreeArrays& trees, int64_t set, uint8_t bin) {
  return (trees.left_sets[set * kSetBytes + (bin >> 3)] >> (bin & 7)) & 1;
}

// Whether a bin goes left at a split.
inline bool goes_left(const TreeArrays& trees, int64_t node, uint8_t bin) {
  const int64_t row = trees.sets[node];
  if (row < 0) return bin_test(trees, node).goes_left(bin);
  return contains(trees, row, bin);
}

// Whether a bin, which is not 0, goes left by a surrogate.
inline bool surrogate_goes_left(const TreeArrays& trees, int64_t surrogate, uint8_t bin) {
  const int32_t set = trees.surrogate_sets[surrogate];
  if (set >= 0) return contains(trees, set, bin);
  return (bin <= trees.surrogate_cuts[surrogate]) != (trees.surrogate_reversed[surrogate] != 0);
}

// Whether a split sends positions beyond the ends of a sequence where it sends missing values.
inline bool treats_outside_as_missing(const TreeArrays& trees, int64_t node) {
  return goes_left(trees, node, 0) == (trees.outside_left[node] != 0);
}

// Appends a node of some trees to others, where the left child of a split has the number `left`.
void append_node(const TreeArrays& from, int64_t node, int32_t left, TreeArrays& to);

// Whether a tree has the same splits as the one before it, so that every position comes to the same
// leaves of both; false for the first.
bool repeats_splits(const TreeArrays& trees, int64_t tree);
// Whether it also has values of the opposite sign, as is the case with two labels.
bool is_opposite(const TreeArrays& trees, int64_t tree);

// Adds the rounds of some trees after those of others.
void append(TreeArrays& trees, const TreeArrays& more);

// Throws std::invalid_argument unless every tree is valid, splits only on columns below n_columns,
// and adds only to outputs below n_outputs.
void check_trees(const TreeArrays& trees, int n_outputs, int32_t n_columns);

}  // namespace hedgerow
