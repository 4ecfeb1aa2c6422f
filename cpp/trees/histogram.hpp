// Histograms: what the examples of a tree node add up to, bin by bin.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "parallel.hpp"
#include "trees/data.hpp"

namespace hedgerow {

// A position whose score of one label should change: by how much the loss rises with it, and how
// that changes. Whole numbers of a tree's own small units, so that sums are exact in any order and
// a histogram less another is what counting would have given.
struct Example {
  int32_t position;
  int32_t gradient;
  int32_t curvature;  // at least 1: nothing is there only where the sum is 0
};

// Sum of the gradients and curvatures of some examples of a tree, in one number: 2^32 gradients
// plus curvatures. Units are such that the curvatures of all examples stay below 2^32 and the
// gradients between -2^31 and 2^31; so nothing runs over, and both are added and subtracted at one
// go.
class Sum {
 public:
  Sum() = default;
  explicit Sum(const Example& example)
      : both_((static_cast<uint64_t>(example.gradient) << 32) +
              static_cast<uint64_t>(example.curvature)) {}

  int64_t gradient() const { return static_cast<int64_t>(both_) >> 32; }
  int64_t curvature() const { return static_cast<int64_t>(both_ & 0xFFFFFFFF); }
  bool is_empty() const { return curvature() == 0; }

  Sum& operator+=(Sum other) {
    both_ += other.both_;
    return *this;
  }
  Sum& operator-=(Sum other) {
    both_ -= other.both_;
    return *this;
  }
  friend Sum operator+(Sum a, Sum b) { return a += b; }
  friend Sum operator-(Sum a, Sum b) { return a -= b; }

 private:
  uint64_t both_ = 0;  // a filler's sum, which nobody reads, may wrap around
};

struct SlotSum {
  int32_t place;  // (offset + before) * n_slots + slot
  Sum sum;
};

struct Histogram {
  std::vector<Sum> full;        // (n_full_bins,) of TreeData
  std::vector<SlotSum> sparse;  // of the slots that have examples, by place
  std::vector<Sum> outside;     // (n_offsets,) examples whose window ends before that offset
};

// Turns the histogram of a parent into that of the child that was not counted. The slots of the
// counted one are those of its parent; afterwards both have only slots with examples.
void subtract(Histogram& of_parent, Histogram& counted);

// Makes histograms; one to a thread.
class HistogramBuilder {
 public:
  HistogramBuilder(const TreeData& data, Stop& stop);

  // Counts the examples of a node. The slots are those that have examples, or for a child all those
  // of its parent, in order, so that what several have counted can be added up slot by slot.
  void fill(std::span<const Example> examples, const Histogram* of_parent, Histogram& histogram);

 private:
  void take_slots(std::vector<SlotSum>& out);
  void take_slots_of(const std::vector<SlotSum>& parent, std::vector<SlotSum>& out);
  void add_full(std::span<const Example> examples, std::vector<Sum>& sums);
  void add_sparse(std::span<const Example> examples, std::vector<Sum>& outside);

  const TreeData& data_;
  Stop& stop_;
  std::vector<Sum> slots_;        // (n_offsets * n_slots,), all zero between calls
  std::vector<uint8_t> scratch_;  // a window
};

}  // namespace hedgerow
