// Examples of a node below a split that sent missing values both ways.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "memory_pool.hpp"
#include "trees/sum.hpp"

namespace hedgerow {

// The arrays of such examples.
struct ExampleArrays {
  int32_t* positions;
  Sum* sums;        // the part of each that is at the node
  int32_t* leasts;  // the minimum curvature of a part of each, see least_part

  ExampleArrays from(int64_t first) const {
    return {positions + first, sums + first, leasts + first};
  }
  // Moves n examples to the place `to`, which is not after `from`.
  void move_up(int64_t from, int64_t n, int64_t to) const {
    if (from == to) return;
    std::copy_n(positions + from, n, positions + to);
    std::copy_n(sums + from, n, sums + to);
    std::copy_n(leasts + from, n, leasts + to);
  }
};

class DividedExamples {
 public:
  DividedExamples(const std::shared_ptr<MemoryPool>& pool, int64_t n)
      : positions_(pool, n), sums_(pool, n), leasts_(pool, n) {}

  ExampleArrays arrays() { return {positions_.data(), sums_.data(), leasts_.data()}; }

 private:
  PooledArray<int32_t> positions_;
  PooledArray<Sum> sums_;
  PooledArray<int32_t> leasts_;
};

}  // namespace hedgerow
