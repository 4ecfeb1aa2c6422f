// The divider: from the examples of a node to those of its children, where missing values go both
// ways.
#pragma once

#include <cstdint>

#include "crew.hpp"
#include "parallel.hpp"
#include "trees/divided_examples.hpp"
#include "trees/sides.hpp"
#include "trees/split.hpp"
#include "trees/sum.hpp"

namespace hedgerow {

// Numbers of examples on both sides of a split, some of them on both, and what the missing ones
// have on the left.
struct Division {
  int64_t n_left = 0, n_right = 0;
  WideSum left_of_missing{};

  Division& operator+=(const Division& other);
};

// Threads that are idle help.
class Divider {
 public:
  // share: of a missing value, what goes left
  Divider(const TreeData& data, const Split& split, double share, Crew& crew, Stop& stop)
      : sides_(data, split, true), share_(share), crew_(crew), stop_(stop) {}

  // Divides n examples, in order: those on the right move up in their arrays, those on the left go
  // to others.
  Division divide(const ExampleArrays& examples, int64_t n, const ExampleArrays& left) const;

  // What missing ones have on the left.
  WideSum left_of_missing(const ExampleArrays& examples, int64_t n) const;

 private:
  template <bool are_kept>
  Division divide_piece(ExampleArrays examples, int64_t n, ExampleArrays left) const;

  Sides sides_;
  double share_;
  Crew& crew_;
  Stop& stop_;
};

}  // namespace hedgerow
