// Objectives: smoothed accuracy, observed counts, curvatures.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "objectives/accuracy.hpp"
#include "objectives/curvatures.hpp"
#include "objectives/observed.hpp"
#include "parallel.hpp"
#include "tests/check.hpp"

namespace hedgerow::tests {
namespace {

double sum_accuracy(const LabelledMarginals& table, Stop& stop) {
  std::vector<double> terms(table.n_positions);
  fill_accuracy_terms(table, 4.0, terms.data(), stop);
  return std::accumulate(terms.begin(), terms.end(), 0.0);
}

// Position 0 is right by 0.25, at position 1 two rivals are ahead by 0.25, position 2 has no label,
// position 3 no weight.
TEST(accuracy) {
  const std::vector<double> p{0.5, 0.25, 0.25, 0.4, 0.4, 0.15, 1, 0, 0, 1, 0, 0},
      weights{2, 1, 1, 0};
  const std::vector<int32_t> labels{0, 2, -1, 0};
  const LabelledMarginals table{4, 3, p.data(), labels.data(), weights.data()};
  Stop stop(nullptr);
  const double right = 1.0 / (1.0 + std::exp(-4.0 * 0.25)), slope = 4.0 * right * (1.0 - right);
  CHECK_NEAR(sum_accuracy(table, stop), 2 * right + (1 - right), 1e-12);
  std::vector<double> gradient(p.size(), NAN);
  fill_accuracy_gradient(table, 4.0, gradient.data(), stop);
  const std::vector<double> expected{2 * slope, -slope, -slope, -slope / 2, -slope / 2, slope,
                                     0,         0,      0,      0,          0,          0};
  CHECK_NEAR(largest_difference(gradient, expected), 0.0, 1e-12);
  const LabelledMarginals single{1, 1, p.data(), labels.data(), weights.data()};  // no rival
  CHECK_NEAR(sum_accuracy(single, stop), 2.0 / (1.0 + std::exp(-4.0 * 0.5)), 1e-12);
}

TEST(count_right) {
  const std::vector<double> p{0.5, 0.5, 0.2, 0.8, 0.9, 0.1, 0.3, 0.7};
  const std::vector<int32_t> codes{1, 0, 0, -1};
  Stop stop(nullptr);
  CHECK(count_right({4, 2, codes.data(), nullptr}, p.data(), 1, stop) == 1);
  CHECK(count_right({0, 2, codes.data(), nullptr}, p.data(), 3, stop) == 0);
  constexpr int64_t kMany = 10000;
  std::vector<double> many;
  std::vector<int32_t> labels;
  int64_t expected = 0;
  for (int64_t t = 0; t < kMany; ++t) {
    labels.push_back(static_cast<int32_t>(below(3)));
    for (int k = 0; k < 3; ++k) many.push_back(uniform(0, 1));
    const auto first = many.end() - 3;
    expected += std::max_element(first, many.end()) - first == labels.back();
  }
  for (const int n_threads : {1, 3})
    CHECK(count_right({kMany, 3, labels.data(), nullptr}, many.data(), n_threads, stop) ==
          expected);
}

TEST(most_probable) {
  const std::vector<double> p{0.5, 0.5, 0.2, 0.8, 0.9, 0.1};
  std::vector<int32_t> codes(3);
  Stop stop(nullptr);
  fill_most_probable(p.data(), 3, 2, codes.data(), 2, stop);
  CHECK((codes == std::vector<int32_t>{0, 1, 0}));
  fill_most_probable(p.data(), 1, 6, codes.data(), 1, stop);
  CHECK(codes[0] == 4);
}

TEST(count_pairs) {
  const std::vector<int32_t> codes{0, 1, 1, 1, 0, -1, 0};
  const std::vector<int64_t> offsets{0, 0, 3, 7};
  CHECK((count_pairs(codes.data(), offsets.data(), 3, 2) == std::vector<int64_t>{0, 1, 1, 1}));
}

TEST(subtract_observed) {
  const std::vector<int32_t> codes{1, -1, 0};
  const std::vector<double> weights{2, 3, 4};
  std::vector<double> expected{1, 1, 1, 1, 1, 1};
  Stop stop(nullptr);
  subtract_observed({3, 2, codes.data(), nullptr}, expected.data(), 2, stop);
  CHECK(expected == std::vector<double>({1, 0, 1, 1, 0, 1}));
  subtract_observed({3, 2, codes.data(), weights.data()}, expected.data(), 1, stop);
  CHECK(expected == std::vector<double>({1, -2, 1, 1, -4, 1}));
}

TEST(curvatures) {
  const std::vector<double> p{0.25, 0.75, 1.0, 0.0}, scales{2.0, 1.0};
  const std::vector<float> gammas{1, 2, 3, 4};
  Stop stop(nullptr);
  std::vector<float> out(4);
  fill_curvatures({2, 2, p.data(), gammas.data(), true, scales.data(), 1, 1}, out.data(), 2, stop);
  CHECK(out == std::vector<float>({0.375f, 0.75f, 1e-16f, 1e-16f}));
  fill_curvatures({2, 2, p.data(), gammas.data(), false, nullptr, 1, 1}, out.data(), 1, stop);
  CHECK(out == std::vector<float>({0.1875f, 0.1875f, 1e-16f, 1e-16f}));
  const std::vector<float> large{16, 8, 8, 8};
  fill_curvatures({2, 2, p.data(), large.data(), true, nullptr, 0.25, 3}, out.data(), 1, stop);
  CHECK(out == std::vector<float>({0.75f, 0.5625f, 1e-16f, 1e-16f}));
}

}  // namespace
}  // namespace hedgerow::tests
