// Memory for pairs by label, see PairsByLabel.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/batch.hpp"
#include "trellis/edge_pairs.hpp"

namespace hedgerow::tests {

// The batch is a part of more positions.
struct ByLabel {
  explicit ByLabel(const Batch& batch, double trim = 0.0)
      : n_labels(batch.n_labels()),
        probs(n_labels * (batch.n_positions() + kFirst + 2) * (n_labels + 1), NAN),
        observed(batch.n_positions(), NAN) {
    for (int64_t t = 0; t < batch.n_positions(); ++t)
      labels.push_back(static_cast<int32_t>(t % n_labels));
    out = {probs.data(),   batch.n_positions() + kFirst + 2, kFirst, trim, labels.data(),
           observed.data()};
  }

  static constexpr int64_t kFirst = 3;
  int64_t n_labels;
  std::vector<float> probs;
  std::vector<double> observed;
  std::vector<int32_t> labels;
  PairsByLabel out;
};

}  // namespace hedgerow::tests
