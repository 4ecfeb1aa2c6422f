// Fractions of examples, which go both ways if their value is missing.
#pragma once

#include <algorithm>
#include <cstdint>

#include "trees/sum.hpp"

namespace hedgerow {

// An example, or a part of it, in integer units.
struct ExamplePart {
  int32_t gradient, curvature;
};

// The part of an example that goes left, for this share; the rest goes right. Parts of less than
// 1/64 of the curvature that the example had at the root, or of none, join the other. There is no
// branch, so that loops can take several examples at a time.
inline ExamplePart left_fraction(ExamplePart example, double share, int32_t curvature_at_root) {
  // Adding and subtracting it rounds to the nearest integer.
  constexpr double kRound = 0x1.8p52;
  const auto part_of = [share](int32_t x) {
    return static_cast<int32_t>((share * static_cast<double>(x) + kRound) - kRound);
  };
  const auto least = static_cast<int32_t>((static_cast<uint32_t>(curvature_at_root) + 63) / 64);
  const int32_t left = part_of(example.curvature), right = example.curvature - left;
  const int32_t gradient = part_of(example.gradient);
  const bool is_whole = std::min(left, right)<least, is_left = left> right;
  return {is_whole ? (is_left ? example.gradient : 0) : gradient,
          is_whole ? (is_left ? example.curvature : 0) : left};
}

inline Sum left_fraction(const Sum& example, double share, int64_t curvature_at_root) {
  const auto [gradient, curvature] =
      left_fraction(ExamplePart{static_cast<int32_t>(example.gradient()),
                                static_cast<int32_t>(example.curvature())},
                    share, static_cast<int32_t>(curvature_at_root));
  return Sum(gradient, curvature);
}

}  // namespace hedgerow
