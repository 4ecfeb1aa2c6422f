// Lanes of doubles and of floats, and sums that keep every digit.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "simd.hpp"
#include "simd_exp.hpp"
#include "simd_float.hpp"
#include "tests/check.hpp"
#include "trellis/node_factors.hpp"
#include "trellis/sums.hpp"
#include "usable_numbers.hpp"

namespace hedgerow::tests {
namespace {

TEST(long_sums) {
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

template <class Value>
void check_usable() {
  const Value largest = std::numeric_limits<Value>::max();
  for (const int64_t n : {0, 1, 255, 256, 1000, 70000}) {
    Stop stop(nullptr);
    std::vector<Value> values(n, largest);
    const auto find = [&](bool may_be_missing) {
      return find_unusable(values.data(), n, largest, may_be_missing, 2, stop);
    };
    CHECK(find(true) == n && find(false) == n);
    if (n == 0) continue;
    const int64_t place = below(n);
    values[place] = NAN;
    CHECK(find(true) == n && find(false) == place);
    for (const double infinite : {INFINITY, -INFINITY}) {
      values[place] = static_cast<Value>(infinite);
      values[n - 1] = values[place];
      CHECK(find(true) == place && find(false) == place);
    }
  }
}

TEST(usable_numbers) {
  check_usable<float>();
  check_usable<double>();
}

TEST(lanes) {
  CHECK(padded(1) == 4 && padded(4) == 4 && padded(5) == 8);
  for (double x = 0.0; x > -720.0; x -= 0.37) {
    const double got = lane(exp_nonpositive(broadcast(x)), 0);
    const double expected = x < -708.0 ? 0.0 : std::exp(x);
    CHECK_NEAR(got, expected, 5e-16 * expected);
  }
  CHECK(lane(exp_nonpositive(broadcast(-kInfinity)), 3) == 0.0);
  for (double x = -700.0; x <= 700.0; x += 0.37)
    CHECK_NEAR(lane(exp_moderate(broadcast(x)), 2) / std::exp(x), 1.0, 5e-16);
  CHECK(std::isnan(lane(exp_moderate(broadcast(std::nan(""))), 1)));
  CHECK(std::isnan(lane(exp_below_zero(broadcast(std::nan(""))), 1)));
  CHECK(lane(exp_below_zero(broadcast(-699.0)), 1) == lane(exp_moderate(broadcast(-699.0)), 1));
  for (const double x : {-701.0, -1e300, -kInfinity})
    CHECK(lane(exp_below_zero(broadcast(x)), 3) < 1e-300);
  const double numbers[] = {3.0, -1.0, 7.0, 2.0, 5.0, 6.0};
  const Lanes lanes = load(numbers);
  CHECK(sum_lanes(lanes) == 11.0 && max_lane(lanes) == 7.0 && min_lane(lanes) == -1.0);
  CHECK(min_lane(maximum(lanes, broadcast(2.0))) == 2.0);
  CHECK(max_lane(minimum(lanes, broadcast(2.0))) == 2.0);
  CHECK(sum_lanes(keep_lanes(lanes, 2, 10.0)) == 22.0);
}

TEST(floats) {
  CHECK(padded_floats(1) == 8 && padded_floats(8) == 8 && padded_floats(9) == 16);
  const float numbers[] = {3.0f, -1.0f, 7.0f, 2.0f, 0.0f, 6.0f, -4.0f, 5.0f, 9.0f};
  const Floats floats = load(numbers);
  CHECK(fold_lanes<Total>(floats) == 18.0f);
  CHECK(fold_lanes<Largest>(floats) == 7.0f && fold_lanes<Smallest>(floats) == -4.0f);
  CHECK(fold_lanes<Total>(if_positive(floats, broadcast(1.0f), broadcast(0.0f))) == 5.0f);
  CHECK(lane(Smallest::add(broadcast(NAN), floats), 1) == -1.0f);
  float out[kFloats] = {};
  const double wide[] = {1.0, 0.5, -2.0, 0.1};
  store_as_floats(out, load(wide));
  CHECK(out[0] == 1.0f && out[1] == 0.5f && out[2] == -2.0f && out[3] == 0.1f && out[4] == 0.0f);
  CHECK(lane(load_from_floats(numbers + 1), 2) == 2.0);
  for (float x = 0.0f; x > -90.0f; x -= 0.37f) {
    const double expected = x < -87.0f ? 0.0 : std::exp(double{x});
    CHECK_NEAR(lane(exp_nonpositive(broadcast(x)), 5), expected, 2.5e-7 * expected);
  }
  CHECK(lane(exp_nonpositive(broadcast(-INFINITY)), 7) == 0.0f);
  const Lanes raised = raise_finite(broadcast(-kInfinity), -3.0);
  CHECK(lane(raised, 0) == -kInfinity);
  CHECK(lane(raise_finite(broadcast(-5.0), -3.0), 1) == -3.0);
  CHECK(lane(raise_finite(broadcast(-1.0), -3.0), 2) == -1.0);
}

// A row of n numbers goes to padded memory and back, at the end of its memory (no room) or before
// it.
TEST(rows) {
  for (int n = 1; n <= 9; ++n) {
    context = std::to_string(n) + " numbers";
    const Row row(n);
    const int n_rows = 1 + row.n_outer_rows();
    std::vector<double> rows(static_cast<size_t>(n) * n_rows), copy(rows.size(), -1.0);
    for (double& x : rows) x = uniform(1, 2);
    for (int r = 0; r < n_rows; ++r) {
      const bool inner = r == 0 && n_rows > 1;
      std::vector<double> padding(padded(n), -1.0);
      row.copy_to_padded(rows.data() + r * n, inner, padding.data());
      CHECK(std::equal(padding.begin(), padding.begin() + n, rows.begin() + r * n));
      CHECK(std::count(padding.begin() + n, padding.end(), 0.0) == padded(n) - n);
      row.copy_from_padded(padding.data(), inner, copy.data() + r * n);
    }
    CHECK(copy == rows);
  }
}

// Exponentials of rows of n scores, of which nothing but the slack is written past the end.
TEST(node_factors) {
  for (int n = 1; n <= 35; ++n) {
    context = std::to_string(n) + " numbers";
    const int n_rows = 3;
    std::vector<double> nodes(size_t{n_rows} * n), maxima(n_rows);
    std::vector<double> factors(size_t{n_rows} * padded(n) + kFactorSlack, -1.0);
    for (double& x : nodes) x = uniform(-20, 20);
    if (n > 1) nodes[n - 1] = -kInfinity;
    fill_node_factors(nodes.data(), n_rows, n, factors.data(), maxima.data());
    for (int t = 0; t < n_rows; ++t) {
      const double* row = nodes.data() + t * n;
      CHECK(maxima[t] == *std::max_element(row, row + n));
      for (int k = 0; k < padded(n); ++k) {
        const double expected = k < n ? std::exp(row[k] - maxima[t]) : 0.0;
        CHECK_NEAR(factors[t * padded(n) + k], expected, 5e-16 * expected);
      }
    }
    nodes[n / 2] = std::nan("");
    fill_node_factors(nodes.data(), n_rows, n, factors.data(), maxima.data());
    CHECK(n == 1 || std::isnan(factors[n / 2]));
  }
}

}  // namespace
}  // namespace hedgerow::tests
