// The value walker: walks trees on numbers with the numbers themselves, without binning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "parallel.hpp"
#include "trees/bins.hpp"
#include "trees/data.hpp"
#include "trees/position_lanes.hpp"
#include "trees/score_table.hpp"
#include "trees/tree_arrays.hpp"

namespace hedgerow {

// Numbers of all columns at every position, not yet binned.
template <class Value>
struct ValueTable {
  int64_t n_positions;
  int64_t n_columns;
  const Value* values;  // (n_positions, n_columns), NaN where missing, none infinite
  Cuts cuts;            // of the columns
};

// Values of a block of positions are binned and walked while they are in the cache, only in columns
// that trees split on, and only by the cuts that they use. Scores have the same bits as those of a
// walk with all bins.
//
// Immutable; any number of threads may walk it.
class ValueWalker {
 public:
  // Whether trees can be walked in this way: they split only on numbers.
  static bool suits(const TreeArrays& trees) {
    return PositionLanes::suits(trees, std::numeric_limits<int32_t>::max());
  }
  // Fewer positions than this are faster to bin and walk one by one.
  static constexpr int64_t kFewest = PositionLanes::kFewest;

  explicit ValueWalker(const TreeArrays& trees);

  // See Forest::add_scores.
  template <class Value>
  void add_scores(const ValueTable<Value>& values, const Sequences& sequences,
                  const ScoreTable& table, int n_threads, Stop& stop) const;

 private:
  // A column that trees split on.
  struct Column {
    int32_t number;
    size_t place;                // in the lanes
    int64_t first_cut, end_cut;  // in asked_cuts_
  };
  template <class Value>
  class Walk;

  PositionLanes build_lanes(const TreeArrays& trees);
  template <class Number>
  std::vector<Number> read_cuts(const Cuts& cuts) const;

  int before_ = 0, after_ = 0;
  std::vector<uint8_t> asked_cuts_;  // last bins that go left, ascending within a column
  std::vector<Column> columns_;      // in order of their numbers
  PositionLanes lanes_;              // for bins by the cuts in use
};

}  // namespace hedgerow
