// Histograms: what the examples of a tree node add up to, bin by bin.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "crew.hpp"
#include "parallel.hpp"
#include "trees/data.hpp"

namespace hedgerow {

// Sum of the gradients and curvatures of some examples of a tree, in one number: 2^32 times the
// gradients plus the curvatures, so that one addition adds both. Both are multiples of small units
// of each tree's own: sums of integers are exact in any order, so that one histogram minus another
// is what counting would have given. Units are such that the curvatures of all examples stay below
// 2^32 and their gradients between -2^31 and 2^31: nothing overflows.
class Sum {
 public:
  Sum() = default;
  // Of one example. Its curvature is at least 1, so that a sum is 0 only where there are none.
  Sum(int32_t gradient, int32_t curvature)
      : both_((static_cast<uint64_t>(static_cast<int64_t>(gradient)) << 32) +
              static_cast<uint64_t>(curvature)) {}

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
  bool operator==(const Sum&) const = default;
  // This, or nothing; without a branch, which would be guessed wrong.
  Sum only_if(bool condition) const {
    Sum sum;
    sum.both_ = both_ & (condition ? ~uint64_t{0} : uint64_t{0});
    return sum;
  }

 private:
  uint64_t both_ = 0;  // the sum of TreeData::filler(), which is never read, may wrap around
};

// Examples of one node of a tree.
struct NodeExamples {
  std::span<const int32_t> positions;
  const Sum* sums;  // (N,) of the tree's examples, by position
};

struct SlotSum {
  int32_t place;  // (offset + before) * n_slots + slot
  Sum sum;
  bool operator==(const SlotSum&) const = default;
};

struct Histogram {
  std::vector<Sum> full;        // (n_full_bins,) of TreeData
  std::vector<SlotSum> sparse;  // of the slots that have examples, by place
  // (n_offsets,) examples whose window ends before that offset; zeros where it is not needed, as
  // all columns are full and none misses values
  std::vector<Sum> outside;
  std::vector<Sum> contexts;  // (n_contexts,) if the tree splits on them, filled by the grower
  bool operator==(const Histogram&) const = default;
};

// Turns the histogram of a parent into that of the child that was not counted. The slots of the
// counted one are those of its parent; afterwards both have only slots with examples.
void subtract(Histogram& of_parent, Histogram& counted);

// Adds what was counted of other examples with the same slots.
void add(Histogram& histogram, const Histogram& more);

class WindowCounter;

// Counts examples into histograms; each thread has its own builder, and those that are idle help.
class HistogramBuilder {
 public:
  HistogramBuilder(const TreeData& data, Crew& crew, Stop& stop);
  ~HistogramBuilder();

  // Counts the examples of a node. The slots are those that have examples, or for a child all those
  // of its parent, in order, so that what several have counted can be added up slot by slot.
  std::unique_ptr<Histogram> count(const NodeExamples& examples, const Histogram* of_parent);
  // Takes a histogram, or null, to use it again.
  void give_back(std::unique_ptr<Histogram> histogram);

 private:
  void fill(const NodeExamples& examples, const Histogram* of_parent, Histogram& histogram);
  void fill_full(const NodeExamples& examples, std::vector<Sum>& sums);
  void fill_outside(const NodeExamples& examples, std::vector<Sum>& outside) const;
  void fill_sparse(const NodeExamples& examples, std::vector<Sum>& outside);
  void take_slots(std::vector<SlotSum>& out);
  void take_slots_of(const std::vector<SlotSum>& parent, std::vector<SlotSum>& out);

  const TreeData& data_;
  Crew& crew_;
  Stop& stop_;
  // (n_offsets * n_slots,), all zero between calls: the first of this thread, others for helpers
  std::vector<std::vector<Sum>> slots_;
  std::unique_ptr<WindowCounter> windows_;
  std::vector<std::vector<Sum>> apart_;  // (n_full_bins,) each: what helpers count
  std::vector<std::unique_ptr<Histogram>> idle_;
};

}  // namespace hedgerow
