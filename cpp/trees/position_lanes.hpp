// Position lanes: every split of a tree is evaluated for a block of positions at once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "trees/data.hpp"
#include "trees/score_table.hpp"
#include "trees/tree_arrays.hpp"

namespace hedgerow {

// Each split is evaluated for all positions of a block, one byte per position, and determines their
// leaf below it: that of its left or of its right child. With many positions per instruction this
// is faster than walking the path of each position. It is for trees on dense columns.
//
// Immutable; any number of threads may use it, each with its own Block.
class PositionLanes {
  // A byte for every position of a block, in whole cache lines.
  struct alignas(64) Row {
    uint8_t bytes[kWalkBlock];
  };

 public:
  // Whether trees can be walked in this way: dense columns only, no sets, at most 256 leaves, and
  // no ancestors, which may be far from a block of positions.
  static bool suits(const TreeArrays& trees, int32_t n_dense);
  // Fewer positions than this are walked faster one by one.
  static constexpr int64_t kFewest = 24;

  // The window of `trees` reaches from `before` positions before to `after` positions after.
  PositionLanes(const TreeArrays& trees, int before, int after);

  // Columns that trees split on, each at its place.
  const std::vector<int32_t>& columns() const { return columns_; }
  // The first position whose bins are read for a block, and the end of these.
  int64_t first_around(int64_t begin) const { return std::max<int64_t>(begin - before_, 0); }
  int64_t end_around(int64_t end, int64_t n_positions) const {
    return std::min(end + after_, n_positions);
  }

  // The working memory of one thread. The bins of the positions around a block must be read before
  // its scores are added to.
  class Block {
   public:
    explicit Block(const PositionLanes& lanes);

    // Bins are read in place if they are also stored column by column.
    void read_bins(const BinTable& bins, int64_t begin, int64_t end);
    // Where to write the bins of the column at a place, from position first_around(begin) on.
    uint8_t* bins_around(size_t place, int64_t begin) {
      return columns_.data() + static_cast<int64_t>(place) * width_ + lanes_.before_ - begin +
             lanes_.first_around(begin);
    }
    // Adds to the scores of positions begin to end - 1, at most kWalkBlock of them.
    void add_scores(const Room& room, const ScoreTable& table, int64_t begin, int64_t end);

   private:
    void copy_bins(const BinTable& bins, int64_t begin, int64_t end);
    void fill_features(const Room& room, int64_t begin, int64_t end);

    const PositionLanes& lanes_;
    int64_t width_;                        // kWalkBlock + window
    std::vector<uint8_t> columns_;         // (n_columns in use, width_) bins
    std::vector<const uint8_t*> sources_;  // (n_columns in use,) bins from the first position on
    std::vector<uint8_t> tile_;            // (kTileColumns, width_) of the table
    std::vector<Row> features_;            // (n_features,)
    std::vector<Row> leaves_;              // (256 + n_splits,) of leaves, then of splits
  };

 private:
  // What a split reads, as bytes: bins, and another byte outside.
  struct Feature {
    int32_t column;  // place in columns_; -1: 0 inside, whatever the bin
    int32_t offset;
    uint8_t outside;  // the byte beyond the ends of a sequence
  };
  struct Split {
    uint32_t feature;
    uint16_t left, right;  // rows of leaves
    uint8_t shift, limit;  // a byte goes left if, minus the shift, it is at most the limit
  };
  struct Tree {
    // Children before their parents; none if the tree before has the same splits.
    int64_t first_split, end_split;
    int64_t end_of_leaves;  // end of the first splits, which lead only to leaves
    int64_t first_value;
    int32_t n_leaves;
    int32_t output;
    uint16_t root;  // row of leaves
  };

  class Builder;

  // Fills the rows of the splits of a tree, of which the first n_of_leaves lead only to leaves.
  static void find_leaves(const Split* splits, int64_t n_of_leaves, int64_t n_splits,
                          const Row* features, Row* rows);

  int before_, after_;
  int32_t max_splits_ = 0;
  std::vector<int32_t> columns_;  // columns in use
  std::vector<size_t> places_;    // places of these, in order of their numbers
  std::vector<Feature> features_;
  std::vector<Split> splits_;
  std::vector<Tree> trees_;
  std::vector<float> values_;  // of all leaves, tree by tree
};

}  // namespace hedgerow
