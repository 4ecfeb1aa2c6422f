// Trees as flat arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hedgerow {

inline constexpr int kMaxTreeNodes = 1 << 16;
inline constexpr int kSetBytes = 32;  // of a set of bins, a bit each

// T trees, grown in R rounds. Node n of tree i is entry tree_offsets[i] + n of the arrays over
// nodes. Children come after their parent, side by side.
struct TreeArrays {
  std::vector<int64_t> round_offsets{0};  // (R + 1,) of round r are trees [r] to [r + 1] - 1
  std::vector<int64_t> tree_offsets{0};   // (T + 1,)
  std::vector<int32_t> outputs;           // (T,) the output whose score a tree adds to
  // By node:
  std::vector<int32_t> columns;       // column that a split asks about, -1 for a leaf
  std::vector<int32_t> offsets;       // where in the window the column is looked at
  std::vector<uint8_t> cuts;          // bins 1 to this one go left; 0 with a set
  std::vector<uint8_t> missing_left;  // whether bin 0 does, without a set
  std::vector<int32_t> sets;          // row of left_sets of a categorical split, else -1
  std::vector<int32_t> lefts;         // left child, counted from the tree's first node
  std::vector<float> values;          // what a leaf adds; of a split what it would add as a leaf
  std::vector<float> gains;           // of splits
  std::vector<float> weights;         // sum of the curvatures of a node's examples
  // (n_sets, kSetBytes) a bit for each bin that goes left.
  std::vector<uint8_t> left_sets;

  int64_t n_trees() const { return static_cast<int64_t>(outputs.size()); }
  int64_t n_nodes() const { return static_cast<int64_t>(columns.size()); }
  int64_t n_sets() const { return static_cast<int64_t>(left_sets.size()) / kSetBytes; }
  // Whether no tree has more leaves; n of them go with n - 1 splits.
  bool have_at_most(int64_t n_leaves) const {
    for (int64_t i = 0; i < n_trees(); ++i)
      if (tree_offsets[i + 1] - tree_offsets[i] > 2 * n_leaves - 1) return false;
    return true;
  }
};

// What a split without a set asks: a bin goes left if bin - shift, as a byte, is at most `limit`.
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

// Whether a tree has the same splits as the one before it, so that every position comes to the same
// leaf of both; false for the first.
bool repeats_splits(const TreeArrays& trees, int64_t tree);

// Adds the rounds of some trees after those of others.
void append(TreeArrays& trees, const TreeArrays& more);

// Throws std::invalid_argument unless every tree is one and asks for columns below n_columns and
// adds to outputs below n_outputs only.
void check_trees(const TreeArrays& trees, int n_outputs, int32_t n_columns);

}  // namespace hedgerow
