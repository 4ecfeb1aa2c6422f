// Sums and products over many positions without loss of digits.
#pragma once

#include <cmath>
#include <cstdint>

namespace hedgerow {

// A compensated sum, by Knuth's exact sum of two numbers, which needs no comparison of the two.
class ExactSum {
 public:
  // lost: digits that are missing in sum
  explicit ExactSum(double sum = 0.0, double lost = 0.0) : sum_(sum), lost_(lost) {}

  void add(double x) {
    const double total = sum_ + x, added = total - sum_;
    lost_ += (sum_ - (total - added)) + (x - added);
    sum_ = total;
  }
  void add(const ExactSum& other, double sign = 1.0) {
    add(sign * other.sum_);
    if (std::isfinite(other.sum_)) add(sign * other.lost_);
  }
  double value() const { return std::isfinite(sum_) ? sum_ + lost_ : sum_; }

 private:
  double sum_;
  double lost_;
};

// A product of positive factors, each within 1e-150 .. 1e150, of which only the logarithm is
// wanted.
class LogProduct {
 public:
  void multiply(double factor) {
    product_ *= factor;
    if (product_ < 1e-150 || product_ > 1e150) {
      int exponent = 0;
      product_ = std::frexp(product_, &exponent);
      exponent_ += exponent;
    }
  }
  double log() const {
    return std::log(product_) + static_cast<double>(exponent_) * 0.6931471805599453;
  }

 private:
  double product_ = 1.0;
  int64_t exponent_ = 0;
};

}  // namespace hedgerow
