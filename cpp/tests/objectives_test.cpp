// Objectives: smoothed accuracy against its definition, and its gradient against central
// differences; observed counts; curvatures.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "objectives/accuracy.hpp"
#include "objectives/curvatures.hpp"
#include "objectives/observed.hpp"
#include "parallel.hpp"
#include "tests/check.hpp"

namespace hedgerow::tests {
namespace {

struct Case {
  int64_t n_positions;
  int n_labels;
  std::vector<double> marginals, weights;
  std::vector<int32_t> labels;

  Case(int64_t positions, int n) : n_positions(positions), n_labels(n) {
    for (int64_t i = 0; i < positions * n; ++i) marginals.push_back(uniform(0, 1));
    for (int64_t t = 0; t < positions; ++t) {
      weights.push_back(below(4) == 0 ? 0.0 : uniform(0, 3));
      labels.push_back(static_cast<int32_t>(below(n + 1)) - 1);
    }
  }
  LabelledMarginals table() const {
    return {n_positions, n_labels, marginals.data(), labels.data(), weights.data()};
  }
  double value(double sharpness) const {
    Stop stop(nullptr);
    return sum_accuracy(table(), sharpness, stop);
  }
  double value_by_definition(double sharpness) const {
    double sum = 0.0;
    for (int64_t t = 0; t < n_positions; ++t) {
      if (labels[t] < 0) continue;
      double rival = 0.0;
      for (int k = 0; k < n_labels; ++k)
        if (k != labels[t]) rival = std::max(rival, marginals[t * n_labels + k]);
      const double margin = marginals[t * n_labels + labels[t]] - rival;
      sum += weights[t] / (1.0 + std::exp(-sharpness * margin));
    }
    return sum;
  }
};

void check_case(Case chosen, double sharpness) {
  CHECK_NEAR(chosen.value(sharpness), chosen.value_by_definition(sharpness), 1e-9);
  std::vector<double> gradient(chosen.marginals.size(), 7.0);
  Stop stop(nullptr);
  fill_accuracy_gradient(chosen.table(), sharpness, gradient.data(), stop);
  for (size_t i = 0; i < gradient.size(); ++i) {
    const double kept = chosen.marginals[i], step = 1e-7;
    chosen.marginals[i] = kept + step;
    const double above = chosen.value(sharpness);
    chosen.marginals[i] = kept - step;
    const double below_it = chosen.value(sharpness);
    chosen.marginals[i] = kept;
    CHECK_NEAR((above - below_it) / (2 * step), gradient[i], 1e-5);
  }
}

TEST(accuracy) {
  for (const int n_labels : {1, 2, 3, 7})
    for (const double sharpness : {0.5, 4.0, 30.0}) {
      context = std::to_string(n_labels) + " labels";
      check_case(Case(0, n_labels), sharpness);
      check_case(Case(12, n_labels), sharpness);
    }
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
  fill_curvatures({2, 2, p.data(), gammas.data(), true, scales.data()}, out.data(), 2, stop);
  CHECK(out == std::vector<float>({0.375f, 0.75f, 1e-16f, 1e-16f}));
  fill_curvatures({2, 2, p.data(), gammas.data(), false, nullptr}, out.data(), 1, stop);
  CHECK(out == std::vector<float>({0.1875f, 0.1875f, 1e-16f, 1e-16f}));
}

}  // namespace
}  // namespace hedgerow::tests
