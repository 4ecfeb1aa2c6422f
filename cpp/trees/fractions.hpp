// Fractions of examples, which go both ways if their value is missing.
#pragma once

#include <algorithm>
#include <cstdint>

#include "trees/histogram.hpp"

namespace hedgerow {

// The part of an example that goes left, for this share, in integer units; the rest goes right.
// Fractions of less than 1/64 of the curvature that the example had at the root, or of none, join
// the other.
inline Sum left_fraction(const Sum& example, double share, int64_t curvature_at_root) {
  constexpr int64_t kSmallest = 64;
  // Adding and subtracting it rounds to the nearest integer.
  constexpr double kRound = 0x1.8p52;
  const auto part_of = [share](int64_t x) {
    return static_cast<int64_t>((share * static_cast<double>(x) + kRound) - kRound);
  };
  const int64_t left = part_of(example.curvature()), right = example.curvature() - left;
  const int64_t smaller = std::min(left, right);
  const bool is_whole = smaller == 0 || kSmallest * smaller < curvature_at_root;
  const Sum part(static_cast<int32_t>(part_of(example.gradient())), static_cast<int32_t>(left));
  // Without a branch, which would be mispredicted.
  return part.only_if(!is_whole) + example.only_if(is_whole && left > right);
}

}  // namespace hedgerow
