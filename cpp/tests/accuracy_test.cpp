// Smoothed accuracy against its definition, and its gradient against central differences.
#include "objectives/accuracy.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

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

}  // namespace
}  // namespace hedgerow::tests
