// Examples: what the trees of a round learn from.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "parallel.hpp"
#include "trees/histogram.hpp"

namespace hedgerow {

// A position, and the first and second derivative of the loss with respect to one label's score.
struct Derivatives {
  int32_t position;
  float gradient;
  float curvature;
};

// Marginals and labels of N positions over K labels, from which derivatives follow:
//   gradient  = expected - weight * observed,   curvature = scale * gamma * p (1 - p),
// or curvature = scale for first-order boosting. Gradients of another loss may be given instead.
struct MarginalTable {
  int64_t n_positions;
  int n_labels;
  const double* expected;            // (N, K) expected counts, weights included where there are any
  const double* probabilities;       // (N, K) p; may be the same array
  bool expected_is_weighted;         // else the weight is still to be multiplied
  const int32_t* codes;              // (N,) label, -1 if only `partial` tells
  const double* weights;             // (N,), or null for 1
  const double* scales;              // (N,) how much a position's curvature counts, or null for 1
  int64_t n_partial;                 // positions of partially labelled sequences
  const int64_t* partial_positions;  // (n_partial,) rising
  const double* partial_observed;    // (n_partial, K) probabilities given the known labels
  const float* gammas;               // (N,), or (N, K) with gammas_by_label; null: first order
  bool gammas_by_label;
  const double* gradients;  // (N, K), or null: as above
};

// Which examples take part. Those that move the loss least can be left out, and so can a share of
// those of labels that were not observed, the others counting for more in their place.
struct Sampling {
  double trim;              // leave out |gradient| <= trim * scale
  const uint8_t* selected;  // (N,) 0 leaves a position out; null: all
  double negative_ratio;    // examples of labels not observed for each one that was; 0: all
  uint64_t key;
};

// The examples of every label, by position.
class Examples {
 public:
  Examples(const MarginalTable& table, const Sampling& sampling, int n_threads, Stop& stop);
  explicit Examples(std::vector<std::vector<Derivatives>> by_label);

  int n_labels() const { return static_cast<int>(by_label_.size()); }
  const std::vector<Derivatives>& of_label(int label) const { return by_label_[label]; }

 private:
  std::vector<std::vector<Derivatives>> by_label_;
};

// Positions whose most probable label is the known one.
int64_t count_right(const double* probabilities, const int32_t* codes, int64_t n_positions,
                    int n_labels, int n_threads, Stop& stop);

// Derivatives in whole units. All gradients together have up to 2^30 units, whatever their signs,
// and all curvatures up to 2^31; then no rounding of up to 2^30 examples takes a Sum beyond its
// range.
struct FixedPoint {
  std::vector<Example> examples;
  double gradient_unit;
  double curvature_unit;
};
FixedPoint to_fixed_point(std::span<const Derivatives> derivatives);

}  // namespace hedgerow
