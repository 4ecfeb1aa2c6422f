// The surrogate walker: trees whose splits ask surrogates where a value is missing.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel.hpp"
#include "trees/asked_attributes.hpp"
#include "trees/data.hpp"
#include "trees/score_table.hpp"
#include "trees/tree_arrays.hpp"

namespace hedgerow {

// Walks one position after the other. Scores are the same bits as those of any other walk where
// nothing is missing.
//
// Immutable; any number of threads may walk it.
class SurrogateWalker {
 public:
  // `trees` and `asked` outlive this; columns below n_dense are dense.
  SurrogateWalker(const TreeArrays& trees, const AskedAttributes& asked, int32_t n_dense);

  // See Walker::add_scores.
  void add_scores(const BinTable& bins, const Room& room, const ScoreTable& table, int n_threads,
                  Stop& stop) const;

 private:
  struct Node {
    int32_t feature;  // place in a row; -1: a leaf
    int32_t offset;
    int32_t left;
    BinTest test;
    bool has_set;
    bool outside_left;
  };
  class Walk;

  const TreeArrays& arrays_;
  const AskedAttributes& asked_;
  std::vector<Node> nodes_;
  std::vector<int32_t> surrogate_features_;  // places in a row
};

}  // namespace hedgerow
