// Scores of positions, for prediction.
#pragma once

#include <cstdint>
#include <vector>

#include "linear/layout.hpp"
#include "parallel.hpp"

namespace hedgerow {

// Scores of positions under given weights; made once for many calls with the same weights.
class Scorer {
 public:
  // weights: (n weights,); neither these nor the arrays of the layout are copied; biases:
  // (n_outputs,) or null.
  Scorer(const WeightLayout& layout, const double* weights, const double* biases);

  int n_outputs() const { return layout_.n_outputs; }

  // scores[t, o] += biases[o] + sum over attributes a of position t of value * weight[a, o].
  // scores: (n_positions, n_outputs)
  void add_scores(const AttributeRows& rows, double* scores, int n_threads, Stop& stop) const;

 private:
  // Weights of one attribute.
  struct Found {
    const double* weights;
    int32_t n_weights;  // kRow: one for every output, and lanes may be read past their end
  };
  static constexpr int32_t kRow = -1;

  void add_rows(const AttributeRows& rows, int64_t first, int64_t end, double* sums,
                double* scores) const;

  WeightLayout layout_;
  const double* weights_;
  int stride_;
  std::vector<double> biases_;  // (stride,)
  std::vector<Found> found_;    // (n_attributes,)
  std::vector<double> wide_;    // (wide attributes, stride), 0 where there is no weight
};

}  // namespace hedgerow
