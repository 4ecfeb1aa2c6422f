// Fractions of examples, which go both ways if their value is missing.
#pragma once

#include <algorithm>
#include <cstdint>

#include "trees/sum.hpp"

namespace hedgerow {

// Adding and subtracting it rounds to the nearest integer.
inline constexpr double kRoundFraction = 0x1.8p52;

// The minimum curvature of a part of an example: 1/64 of what the example has at the root.
inline int32_t least_part(const Sum& at_root) {
  return static_cast<int32_t>((at_root.curvature() + 63) / 64);
}

// The part of an example that goes left, for this share; the rest goes right. If a part would have
// a curvature below `least`, the whole example goes to the other side.
inline Sum left_fraction(const Sum& example, double share, int32_t least) {
  const auto part_of = [share](int64_t x) {
    const double part = share * static_cast<double>(x);
    return static_cast<int32_t>((part + kRoundFraction) - kRoundFraction);
  };
  const int32_t left = part_of(example.curvature());
  const auto right = static_cast<int32_t>(example.curvature() - left);
  if (std::min(left, right) < least) return example.only_if(left > right);
  return Sum(part_of(example.gradient()), left);
}

}  // namespace hedgerow
