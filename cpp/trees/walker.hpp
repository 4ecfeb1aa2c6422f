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
// trees on attributes alone are walked by LeafMasks, whole blocks of positions through trees on
// dense columns by PositionLanes; all others here, some positions at a time. The scores are the
// same bits: what differs is how a leaf is found.
class Walker {
 public:
  // `trees` have been checked, and outlive the walker. It is for bins of as many dense columns, and
  // the same default bins of attributes, as `bins` have.
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
    BinTest test;  // a shift of 2 if it takes more to answer
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
  // Null unless they walk where values are missing.
  std::unique_ptr<const FractionWalker> fractions_;
  std::unique_ptr<const SurrogateWalker> surrogates_;
  std::unique_ptr<const LeafMasks> masks_;  // null unless trees are walked by it, and nothing else
  std::unique_ptr<const PositionLanes> lanes_;  // null unless blocks are walked by it
  bool has_hard_ = false;                       // splits that a BinTest does not answer
  std::vector<Tree> trees_;
  // Features are the bytes of all dense columns in the window, then the attributes in use.
  std::vector<Node> nodes_;
};

}  // namespace hedgerow
