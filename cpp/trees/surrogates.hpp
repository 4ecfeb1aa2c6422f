// Surrogates: splits that predict another one, for examples whose value is missing there.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trees/data.hpp"
#include "trees/grown_tree.hpp"
#include "trees/histogram.hpp"
#include "trees/split.hpp"

namespace hedgerow {

inline constexpr size_t kMaxSurrogates = 5;  // of a split

// Some examples of a node: their histogram, with the slots of the node's histogram, and their sum.
struct CountedExamples {
  const Histogram* histogram = nullptr;  // null: there are none
  WideSum total{};
};

// The examples of a node, and how a split divides those whose value is not missing.
struct DividedNode {
  CountedExamples all;
  CountedExamples missing;
  CountedExamples one_side;  // of those on the left, or of those on the right
  bool is_left;
};

// The surrogates of a split on a column, the best first. On the examples at which both are known,
// of total weight W, the split sends W_L to the left and W_R to the right; a surrogate that agrees
// with it on a weight of A has the association (min(W_L, W_R) - (W - A)) / min(W_L, W_R), which
// must be above 0. The surrogate on a feature has the cut and the orientation that agree most;
// categories go where most of their weight goes. `features` may be used, see find_split; columns
// with a direction may not.
std::vector<Surrogate> find_surrogates(const TreeData& data, const DividedNode& node,
                                       const Split& split, const uint8_t* features,
                                       const int8_t* directions);

// The sides of positions, by the first surrogate whose value is neither missing nor outside there;
// if there is none, by the side to which the split itself sends missing values.
std::vector<uint8_t> find_sides_by(const std::vector<Surrogate>& surrogates, const Split& split,
                                   const TreeData& data, std::span<const int32_t> positions);

}  // namespace hedgerow
