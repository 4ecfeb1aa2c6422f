// Sums of the gradients and curvatures of a tree's examples, in whole units.
#pragma once

#include <cstdint>

namespace hedgerow {

// The sum of some examples in two numbers, enough for any number of examples.
class WideSum {
 public:
  WideSum() = default;
  WideSum(int64_t gradient, int64_t curvature) : gradient_(gradient), curvature_(curvature) {}

  int64_t gradient() const { return gradient_; }
  int64_t curvature() const { return curvature_; }
  bool is_empty() const { return curvature_ == 0; }

  WideSum& operator+=(const WideSum& other) {
    gradient_ += other.gradient_;
    curvature_ += other.curvature_;
    return *this;
  }
  WideSum& operator-=(const WideSum& other) {
    gradient_ -= other.gradient_;
    curvature_ -= other.curvature_;
    return *this;
  }
  friend WideSum operator+(WideSum a, const WideSum& b) { return a += b; }
  friend WideSum operator-(WideSum a, const WideSum& b) { return a -= b; }
  bool operator==(const WideSum&) const = default;

 private:
  int64_t gradient_ = 0, curvature_ = 0;
};

// The same in one number: 2^32 times the gradients plus the curvatures, so that one addition adds
// both. Both are multiples of small units, chosen for each tree: sums of integers are exact in any
// order, so that the difference of two histograms is what counting would have given. A Sum holds
// any single example. It also holds any sum of examples if the units of the tree keep the sum of
// all curvatures below 2^32 and those of gradients between -2^31 and 2^31, see UnitBits.
class Sum {
 public:
  Sum() = default;
  // Of one example. Its curvature is at least 1, so that a sum is 0 only where there are none.
  Sum(int32_t gradient, int32_t curvature) : Sum(WideSum(gradient, curvature)) {}
  explicit Sum(const WideSum& total)
      : both_((static_cast<uint64_t>(total.gradient()) << 32) +
              static_cast<uint64_t>(total.curvature())) {}
  operator WideSum() const { return {gradient(), curvature()}; }

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
  // This if the condition holds, else zero; without a branch, which would be mispredicted.
  Sum only_if(bool condition) const {
    Sum sum;
    sum.both_ = both_ & -uint64_t{condition};
    return sum;
  }

 private:
  uint64_t both_ = 0;  // the sum of TreeData::filler(), which is never read, may wrap around
};

}  // namespace hedgerow
