// The walker: trees laid out for walking.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "parallel.hpp"
#include "trees/asked_attributes.hpp"
#include "trees/data.hpp"
#include "trees/fraction_walker.hpp"
#include "trees/leaf_masks.hpp"
#include "trees/position_lanes.hpp"
#include "trees/score_table.hpp"
#include "trees/surrogate_walker.hpp"
#include "trees/tree_arrays.hpp"

namespace hedgerow {

// Immutable; any number of threads may walk it.
//
// Where values are missing, trees may be walked by FractionWalker or SurrogateWalker. Otherwise,
// trees that split only on attributes are walked by LeafMasks, and trees on dense columns by
// PositionLanes for whole blocks of positions; all others here, some positions at a time. The
// scores have the same bits: only how a leaf is found differs.
class Walker {
 public:
  // `trees` have been checked, and outlive the walker. It is for bins with the same number of dense
  // columns, and the same default bins of attributes, as `bins`.
  Walker(const TreeArrays& trees, const BinTable& bins);

  bool fits(const BinTable& bins) const {
    return n_dense_ == bins.n_dense && (masks_ == nullptr || masks_->fits(bins));
  }

  // See Forest::add_scores.
  void add_scores(const BinTable& bins, const Sequences& sequences, const ScoreTable& table,
                  int n_threads, Stop& stop) const;

 private:
  // Leaves lead to themselves, so that every path of a tree can be walked to the same length.
  struct Node {
    uint32_t feature;
    BinTest test;  // a shift of 2 if the split needs more than a BinTest
    uint16_t left;
  };
  struct Tree {
    int64_t first;  // node
    int32_t depth;
    int32_t output;
    bool repeats;  // the splits of the tree before
  };
  class Walk;

  void lay_out();
  Node pack_node(int64_t node, int64_t first) const;

  const TreeArrays& arrays_;
  int32_t n_dense_;
  AskedAttributes asked_;
  // Not null if they walk all trees where values are missing.
  std::unique_ptr<const FractionWalker> fractions_;
  std::unique_ptr<const SurrogateWalker> surrogates_;
  std::unique_ptr<const LeafMasks> masks_;      // if not null, it walks all trees
  std::unique_ptr<const PositionLanes> lanes_;  // if not null, it walks whole blocks
  bool has_hard_ = false;                       // whether any split needs more than a BinTest
  std::vector<Tree> trees_;
  // Features are the bytes of all dense columns in the window, then the attributes in use.
  std::vector<Node> nodes_;
};

}  // namespace hedgerow
