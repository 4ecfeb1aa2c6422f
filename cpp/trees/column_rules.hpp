// Column rules: monotone constraints, and which columns may interact.
#pragma once

#include <cstdint>
#include <vector>

#include "trees/tree_arrays.hpp"

namespace hedgerow {

// Direction of a column for an output.
enum ColumnDirection : int8_t {
  kFalling = -1,  // the output never rises with the column
  kAnyWay = 0,
  kRising = 1,  // it never falls
  kUnused = 2,  // its trees do not split on the column
};

class ColumnRules {
 public:
  // `directions` is (n_outputs, n_columns), or empty: any way. The columns on the path from a root
  // to a leaf are all in one of `groups`, each in ascending order; at most `max_columns` of them
  // are different. Without groups, or if `max_columns` is 0, there is no such limit.
  ColumnRules(int32_t n_columns, std::vector<int8_t> directions,
              std::vector<std::vector<int32_t>> groups, int max_columns);

  int32_t n_columns() const { return n_columns_; }
  // -1: any number, since there are no directions.
  int n_outputs() const;

  // Whether an output has columns of this kind.
  bool has_monotone(int output) const;
  bool has_unused(int output) const;
  // (n_columns,) of an output; only if there are any.
  const int8_t* directions(int output) const {
    return directions_.data() + static_cast<int64_t>(output) * n_columns_;
  }

  bool limits_interactions() const { return !groups_.empty() || max_columns_ > 0; }
  // Marks the columns that may be split on below splits on the columns of `branch`, which are
  // distinct and in ascending order: (n_columns,), 1 if they may.
  std::vector<uint8_t> allowed_below(const std::vector<int32_t>& branch) const;

  // Whether every tree satisfies the rules. The trees must be valid, with the same numbers of
  // outputs and columns; further columns are previous labels, which are not constrained.
  bool are_kept(const TreeArrays& trees) const;

 private:
  bool allow_columns(const TreeArrays& trees, int64_t tree) const;
  bool allow_values(const TreeArrays& trees, int64_t tree) const;
  bool has(int output, bool (*is_wanted)(int8_t)) const;

  int32_t n_columns_;
  std::vector<int8_t> directions_;
  std::vector<std::vector<int32_t>> groups_;
  int max_columns_;
};

// `branch` and one more column, if it is not included yet.
std::vector<int32_t> extend(std::vector<int32_t> branch, int32_t column);

}  // namespace hedgerow
