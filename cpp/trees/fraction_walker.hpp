// The fraction walker: trees whose splits send missing values both ways.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "parallel.hpp"
#include "trees/asked_attributes.hpp"
#include "trees/data.hpp"
#include "trees/score_table.hpp"
#include "trees/tree_arrays.hpp"

namespace hedgerow {

// A block of positions goes down a tree together, with the share of each that is at a node. A tree
// adds the values of all leaves that a position comes to, each times its share there, from left to
// right. Scores are the same bits as those of any other walk where nothing is missing.
//
// Immutable; any number of threads may walk it.
class FractionWalker {
 public:
  // `trees` and `asked` outlive this; columns below n_dense are dense.
  FractionWalker(const TreeArrays& trees, const AskedAttributes& asked, int32_t n_dense);

  // See Walker::add_scores.
  void add_scores(const BinTable& bins, const Room& room, const ScoreTable& table, int n_threads,
                  Stop& stop) const;

 private:
  // What splits ask about.
  struct Feature {
    int32_t place;  // in a row
    int32_t offset;
  };
  class Walk;

  const TreeArrays& arrays_;
  const AskedAttributes& asked_;
  std::vector<Feature> features_;
  std::vector<int32_t> feature_numbers_;  // by node; -1: a leaf
};

}  // namespace hedgerow
