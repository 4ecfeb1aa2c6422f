// The forest: trees made for walking.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel.hpp"
#include "trees/data.hpp"

namespace hedgerow {

// Trees as arrays; node n of tree i is entry tree_offsets[i] + n. Children come after their parent,
// side by side, and `lefts` are relative to the tree.
struct TreeArrays {
  int64_t n_trees;
  const int64_t* tree_offsets;  // (n_trees + 1,)
  const int32_t* tree_labels;   // (n_trees,) whose score a tree adds to
  const int32_t* columns;       // by node, -1 for a leaf
  const int32_t* offsets;       // where in the window the column is looked at
  const uint8_t* cuts;          // bins up to this one go left; 0 with a set
  const uint8_t* missing_left;  // whether bin 0 does
  const int32_t* sets;          // row of left_sets of a categorical split, else -1
  const int32_t* lefts;
  const float* values;
  int64_t n_sets;
  const uint8_t* left_sets;  // (n_sets, 32) a bit for each bin that goes left
};

inline constexpr int kMaxTreeNodes = 1 << 16;

// Throws std::invalid_argument unless every tree is one and asks for columns below n_columns and
// labels below n_labels only.
void check_trees(const TreeArrays& trees, int64_t n_nodes, int32_t n_columns, int n_labels);

// Immutable; any number of threads may walk it.
class Forest {
 public:
  // `trees` have been checked; nothing of them is kept.
  Forest(const TreeArrays& trees, int32_t n_dense, int32_t n_attributes, int n_labels);

  int n_labels() const { return n_labels_; }
  int32_t n_dense() const { return n_dense_; }
  int32_t n_attributes() const { return n_attributes_; }

  // out[t, k] = scores[t, k] + the values of label k's trees at position t, added one after the
  // other in order. Both (N, K), which may be the same; the offsets say where sequences begin
  // and end.
  void add_scores(const BinTable& bins, int64_t n_sequences, const int64_t* sequence_offsets,
                  const double* scores, double* out, int n_threads, Stop& stop) const;

 private:
  // Leaves lead to themselves, so that every path of a tree can be walked to the same length.
  // A bin goes left if bin - shift, as a byte, is at most `limit`: with a shift of 1 missing values
  // wrap around and go right.
  struct Node {
    uint32_t feature;
    uint8_t limit;
    uint8_t shift;  // 2 for a categorical split
    uint16_t left;
  };
  struct Tree {
    int64_t first;  // node
    int32_t depth;
    int32_t label;
  };
  // An attribute that is asked for, and where in the window.
  struct Feature {
    int32_t attribute;
    int32_t offset;
  };
  class Walk;

  int n_offsets() const { return before_ + after_ + 1; }
  // Number of the byte of a dense column in a window.
  uint32_t window_place(int32_t column, int32_t offset) const {
    return static_cast<uint32_t>((offset + before_) * n_dense_ + column);
  }

  int n_labels_;
  int32_t n_dense_;
  int32_t n_attributes_;
  int before_ = 0, after_ = 0;
  bool has_sets_ = false;
  std::vector<Tree> trees_;
  std::vector<Node> nodes_;
  std::vector<float> values_;
  std::vector<int32_t> sets_;       // by node, if has_sets_
  std::vector<uint8_t> left_sets_;  // (n_sets, 32)
  // Features are the bytes of all dense columns in the window, then the attributes in use.
  std::vector<Feature> attributes_;
  std::vector<int32_t> numbers_;  // (n_offsets, n_attributes) feature, -1 if not in use
};

}  // namespace hedgerow
