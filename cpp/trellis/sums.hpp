// Sums and products over many positions without loss of digits.
#pragma once

#include <cmath>
#include <cstdint>

namespace hedgerow {

// Neumaier's compensated sum.
class ExactSum {
 public:
  void add(double x) {
    const double total = sum_ + x;
    lost_ += std::fabs(sum_) >= std::fabs(x) ? (sum_ - total) + x : (x - total) + sum_;
    sum_ = total;
  }
  double value() const { return std::isfinite(sum_) ? sum_ + lost_ : sum_; }

 private:
  double sum_ = 0.0;
  double lost_ = 0.0;
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
