// The divider: from the examples of a node to those of its children, where missing values go both
// ways.
#pragma once

#include <cstdint>
#include <span>

#include "trees/sides.hpp"
#include "trees/split.hpp"
#include "trees/sum.hpp"

namespace hedgerow {

// Numbers of examples on both sides of a split, some of them on both, and what the missing ones
// have on the left.
struct Division {
  int64_t n_left = 0, n_right = 0;
  WideSum left_of_missing{};
};

// Where examples are: their positions, and what each has at a node.
struct ExampleArrays {
  int32_t* positions;
  Sum* sums;

  ExampleArrays from(int64_t first) const { return {positions + first, sums + first}; }
};

class Divider {
 public:
  // share: of a missing value, what goes left
  // at_root: (N,) the whole examples, by position
  Divider(const TreeData& data, const Split& split, double share, const Sum* at_root)
      : sides_(data, split, true), share_(share), at_root_(at_root) {}

  // Divides some examples, in order: those on the right move up in their arrays, those on the left
  // go to others. `sums`, here and below, is what examples have at the node, one after the other.
  Division divide(std::span<int32_t> positions, Sum* sums, ExampleArrays left) const;

  // What missing ones have on the left; without `sums` all are whole.
  WideSum left_of_missing(std::span<const int32_t> positions, const Sum* sums) const;

 private:
  class Block;

  Sides sides_;
  double share_;
  const Sum* at_root_;
};

}  // namespace hedgerow
