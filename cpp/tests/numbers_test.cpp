// Four lanes at a time, and sums that keep every digit.
#include <algorithm>
#include <cmath>

#include "simd.hpp"
#include "tests/check.hpp"
#include "trellis/sums.hpp"

namespace hedgerow::tests {
namespace {

void test_long_sums() {
  context = "sums";
  ExactSum sum;
  sum.add(1e16);
  for (int i = 0; i < 1000; ++i) sum.add(1.0);
  sum.add(-1e16);
  CHECK(sum.value() == 1000.0);
  sum.add(-kInfinity);
  CHECK(sum.value() == -kInfinity);
  LogProduct product;
  for (int i = 0; i < 1000; ++i) product.multiply(i % 3 == 0 ? 1e149 : 1e-120);
  CHECK_NEAR(product.log(), (334 * 149 - 666 * 120) * std::log(10.0), 1e-8);
}

void test_lanes() {
  context = "lanes";
  CHECK(padded(1) == 4 && padded(4) == 4 && padded(5) == 8);
  for (double x = 0.0; x > -720.0; x -= 0.37) {
    const double got = lane(exp_nonpositive(broadcast(x)), 0);
    const double expected = x < -708.0 ? 0.0 : std::exp(x);
    CHECK_NEAR(got, expected, 5e-16 * expected);
  }
  CHECK(lane(exp_nonpositive(broadcast(-kInfinity)), 3) == 0.0);
  const double numbers[] = {3.0, -1.0, 7.0, 2.0, 5.0, 6.0};
  const Lanes lanes = load(numbers);
  CHECK(sum_lanes(lanes) == 11.0 && max_lane(lanes) == 7.0 && min_lane(lanes) == -1.0);
  CHECK(min_lane(maximum(lanes, broadcast(2.0))) == 2.0);
  CHECK(max_lane(minimum(lanes, broadcast(2.0))) == 2.0);
  for (const int n : {0, 1, 4, 6}) {
    double copy[8] = {};
    copy_row(numbers, n, copy);
    CHECK(std::equal(numbers, numbers + n, copy) && copy[n] == 0.0);
  }
}

}  // namespace

void test_numbers() {
  test_long_sums();
  test_lanes();
}

}  // namespace hedgerow::tests
