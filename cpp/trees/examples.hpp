// Examples: what the trees of a round learn from.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "parallel.hpp"
#include "trees/histogram.hpp"

namespace hedgerow {

// A position, and the first and second derivative of the loss with respect to one output's score.
struct Derivatives {
  int32_t position;
  float gradient;
  float curvature;
};

// Derivatives of the loss with respect to the scores of K outputs at N positions.
struct DerivativeTable {
  int64_t n_positions;
  int n_outputs;
  const double* gradients;  // (N, K)
  const float* curvatures;  // (N, K), or (N,) for all outputs alike
  bool curvatures_by_output;
};

// Which examples take part. Those that move the loss least can be left out, and so can a share of
// those of labels that were not observed, the others counting for more in their place.
struct Sampling {
  double trim;              // leave out |gradient| <= trim * scale
  const double* scales;     // (N,) how much a position counts, 0: it is left out; null: all 1
  const uint8_t* selected;  // (N,) 0 leaves a position out; null: all take part
  double negative_ratio;    // examples of labels not observed for each one that was; 0: all
  const int32_t* codes;     // (N,) the observed label, -1 if unknown; null if the ratio is 0
  uint64_t key;
};

// The examples of every output, by position.
class Examples {
 public:
  Examples(const DerivativeTable& table, const Sampling& sampling, int n_threads, Stop& stop);
  explicit Examples(std::vector<std::vector<Derivatives>> by_output);

  int n_outputs() const { return static_cast<int>(by_output_.size()); }
  const std::vector<Derivatives>& of_output(int output) const { return by_output_[output]; }

 private:
  std::vector<std::vector<Derivatives>> by_output_;
};

// Derivatives in whole units. All gradients together have up to 2^30 units, whatever their signs,
// and all curvatures up to 2^31; then no rounding of up to 2^30 examples takes a Sum beyond its
// range.
struct FixedPoint {
  std::vector<Example> examples;
  double gradient_unit;
  double curvature_unit;
};
// Throws std::invalid_argument if a derivative is not finite or a curvature negative.
FixedPoint to_fixed_point(std::span<const Derivatives> derivatives);

}  // namespace hedgerow
