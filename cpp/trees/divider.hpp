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

// The number of examples on each side of a split (some are on both), and the sum of the parts that
// go left, of examples whose value is missing.
struct Division {
  int64_t n_left = 0, n_right = 0;
  WideSum left_of_missing{};

  Division& operator+=(const Division& other);
};

// Idle threads help.
class Divider {
 public:
  // share: of an example whose value is missing, how much goes left
  Divider(const TreeData& data, const Split& split, double share, Crew& crew, Stop& stop)
      : sides_(data, split, true), share_(share), crew_(crew), stop_(stop) {}

  // Divides n examples, in order: those on the right move up in their arrays, those on the left are
  // written to `left`.
  Division divide(const ExampleArrays& examples, int64_t n, const ExampleArrays& left) const;

  // The sum of the parts that go left, of examples whose value is missing.
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
