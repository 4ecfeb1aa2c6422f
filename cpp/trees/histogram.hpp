// Histograms: sums of the examples of a tree node by bin.
#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "trees/sum.hpp"

namespace hedgerow {

// Examples of one node of a tree.
struct NodeExamples {
  std::span<const int32_t> positions;
  // (N,) by position, for all examples of the tree; or, if are_in_order, (n,) in the order of
  // `positions`, which is possible only without a window.
  const Sum* sums;
  bool are_in_order = false;

  Sum sum(int64_t i) const { return sums[are_in_order ? i : positions[i]]; }
  NodeExamples part(int64_t begin, int64_t end) const {
    return {positions.subspan(begin, end - begin), sums + (are_in_order ? begin : 0), are_in_order};
  }
};

// Here and elsewhere, AnySum is Sum, or WideSum where sums of examples may be beyond its range.
template <class AnySum>
struct SlotSum {
  int32_t place;  // (offset + before) * n_slots + slot
  AnySum sum;
  bool operator==(const SlotSum&) const = default;
};

template <class AnySum>
struct BinSums {
  std::vector<AnySum> full;             // (n_full_bins,) of TreeData
  std::vector<SlotSum<AnySum>> sparse;  // of the slots that have examples, by place
  // (n_offsets,) sums of the examples whose window ends before that offset; zeros if they are not
  // needed, because all columns are full and none has missing values
  std::vector<AnySum> outside;
  std::vector<AnySum> contexts;  // (n_contexts,) if the tree splits on them, filled by the grower
  bool operator==(const BinSums&) const = default;
};

// All histograms of a tree are of one kind.
using Histogram = std::variant<BinSums<Sum>, BinSums<WideSum>>;

// Turns the histogram of a parent into that of the child that was not counted. The slots of
// `counted` are those of the parent; afterwards both have only slots with examples.
void subtract(Histogram& of_parent, Histogram& counted);

// Adds the sums of other examples with the same slots.
void add(Histogram& histogram, const Histogram& more);

}  // namespace hedgerow
