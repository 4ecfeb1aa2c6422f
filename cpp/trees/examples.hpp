// Examples that the trees of a round are grown from.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "crew.hpp"
#include "memory_pool.hpp"
#include "objectives/curvatures.hpp"
#include "parallel.hpp"
#include "sum_grid.hpp"
#include "trees/sum.hpp"
#include "trees/workers.hpp"

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
  // There are two outputs, with opposite gradients and the same curvatures: the examples of the
  // second output are enough.
  bool is_opposite = false;
  // (N,) the observed output, -1: none. If given, `gradients` are probabilities, from which 1 is to
  // be subtracted at the observed output, and `curvatures` are gammas, so that only what the
  // examples need is computed.
  const int32_t* observed = nullptr;
  CurvatureRule rule{};

  double gradient(int64_t t, int64_t k) const {
    const double number = gradients[t * n_outputs + k];
    return observed == nullptr ? number : number - static_cast<double>(observed[t] == k);
  }
  float curvature(int64_t t, int64_t k) const {
    const int64_t at = t * n_outputs + k;
    const float number = curvatures[curvatures_by_output ? at : t];
    return observed == nullptr ? number : rule.curvature(gradients[at], number, 1.0);
  }
};

// Weights of sampled negative examples (of labels not observed): unbiased; 1; or balanced with the
// positive ones.
enum class NegativeWeight { kUnbiased, kNone, kBalanced };

// Selection of examples. Those with the smallest gradients can be left out. The others can be
// sampled by size, and then negative ones can be sampled.
struct Sampling {
  double trim;              // leave out |gradient| <= trim * scale
  const double* scales;     // (N,) how much a position counts, 0: it is left out; null: all 1
  const uint8_t* selected;  // (N,) 0 leaves a position out; null: all take part
  double negative_ratio;    // examples of labels not observed for each one that was; 0: all
  const int32_t* codes;     // (N,) the observed label, -1 if unknown; null if the ratio is 0
  uint64_t key;
  NegativeWeight negative_weight = NegativeWeight::kUnbiased;
  double share = 1.0;  // share of the examples that are drawn by size; 1: all
  // (N,) what the draws at a position depend on; null: on its number
  const uint64_t* identities = nullptr;
  double bound = 0.0;  // upper bound on the total weight of all positions, see SumGrid

  uint64_t identity(int32_t position) const {
    return identities == nullptr ? static_cast<uint64_t>(position) : identities[position];
  }
  bool draws_examples() const { return share < 1.0 || negative_ratio > 0.0; }
};

// Importance of an example for the trees. A leaf's value v = -sum g / sum h varies least if
// examples are drawn in proportion to |g + v h|, see Ibragimov and Gusev (2019), Minimal Variance
// Sampling in Stochastic Gradient Boosting; only the magnitude of v is known.
inline float example_size(float gradient, float curvature) {
  constexpr double kValue = 0.1;
  const double g = gradient, vh = kValue * curvature;
  return static_cast<float>(std::sqrt(g * g + vh * vh));
}

// For each output the c that solves sum_i min(1, c size_i) = share * n, over the n examples of all
// workers. sizes: of this worker's examples, by output
std::vector<double> find_rates(std::span<const std::vector<float>> sizes, double share,
                               const Workers& workers, int n_threads, Stop& stop);

// Sampling of the examples of an output by size: each with the probability min(1, c size), so that
// the expected number is the requested share. Their weight is 1 / probability.
class DrawnBySize {
 public:
  // rate: the c above
  DrawnBySize(double rate, const Sampling& sampling, int output);

  // How much an example counts; 0: it is left out. NaN stays NaN, which is refused later.
  float weigh(int32_t position, float size) const;

 private:
  const Sampling& sampling_;
  uint64_t key_;
  double rate_;
};

// Sampling of an output's negative examples, those where its label was not observed.
class Negatives {
 public:
  // Of the n_examples of all workers, n_positive are those whose label was observed.
  Negatives(const Sampling& sampling, int output, int64_t n_positive, int64_t n_examples);

  // How much an example counts; 0: it is left out.
  float weigh(int32_t position) const;

 private:
  const Sampling& sampling_;
  int output_;
  uint64_t key_;
  double share_;
  float weight_;
};

// The gradients of a tree's examples, in absolute value, sum to at most 2^gradients units, and
// their curvatures to at most 2^curvatures. With 30 and 31, the rounding of at most 2^30 examples
// cannot take a Sum beyond its range.
struct UnitBits {
  static constexpr int kGradientsOfSum = 30, kCurvaturesOfSum = 31;
  int gradients = kGradientsOfSum, curvatures = kCurvaturesOfSum;

  // Whether sums of examples need a WideSum.
  bool are_wide() const { return gradients > kGradientsOfSum || curvatures > kCurvaturesOfSum; }
};

// The examples of every output, by position.
class Examples {
 public:
  Examples(const DerivativeTable& table, const Sampling& sampling,
           const std::shared_ptr<MemoryPool>& pool, int n_threads, Stop& stop,
           const Workers& workers = Workers(), const UnitBits& unit_bits = {});
  // Positions of an output must not be negative, and must ascend.
  Examples(const std::vector<std::vector<Derivatives>>& by_output,
           const std::shared_ptr<MemoryPool>& pool, const UnitBits& unit_bits = {});
  Examples(Examples&&) = default;

  int n_outputs() const { return static_cast<int>(by_output_.size()); }
  // Whether output 0 has no examples because its gradients are the opposite of those of output 1.
  bool is_opposite() const { return is_opposite_; }
  std::span<const Derivatives> of_output(int output) const {
    return {by_output_[output].data(), static_cast<size_t>(sizes_[output])};
  }
  // All positions are below this number.
  int64_t n_positions() const { return n_positions_; }
  // That of the sampling.
  double bound() const { return bound_; }
  const UnitBits& unit_bits() const { return unit_bits_; }

 private:
  void draw_by_size(const Sampling& sampling, const Workers& workers, int n_threads, Stop& stop);
  void stratify(const Sampling& sampling, const Workers& workers, int n_threads, Stop& stop);

  int64_t n_positions_;
  bool is_opposite_ = false;
  double bound_ = 0.0;
  UnitBits unit_bits_;
  std::vector<int64_t> sizes_;                       // by output
  std::vector<PooledArray<Derivatives>> by_output_;  // positions ascend
};

// The gradient and the curvature that a 1 in a Sum stands for, powers of two.
struct Units {
  double gradient;
  double curvature;

  Sum round(const Derivatives& derivatives) const {
    // Adding it leaves the nearest integer in the low bits.
    constexpr double kRound = 0x1.8p52;
    // Units are powers of two, and so are their inverses. All operations are on whole words, so
    // that loops can process several examples at a time.
    const auto of_gradient =
        std::bit_cast<uint64_t>(derivatives.gradient * (1.0 / gradient) + kRound) << 32;
    const auto of_curvature =
        std::bit_cast<uint64_t>(derivatives.curvature * (1.0 / curvature) + kRound) & 0xFFFFFFFF;
    return std::bit_cast<Sum>(of_gradient + std::max<uint64_t>(of_curvature, 1));
  }
};

// Grids for the sums of Magnitudes. Derivatives may be larger than the weights of their positions,
// but are small nearly everywhere; only the first digits matter for the units.
struct MagnitudeGrid {
  static constexpr double kGradients = 0x1p6, kCurvatures = 0x1p14;
  SumGrid gradients, curvatures;

  explicit MagnitudeGrid(double bound)
      : gradients(bound * kGradients), curvatures(bound * kCurvatures) {}
};

// Magnitudes of some derivatives.
struct Magnitudes {
  double gradients = 0.0, curvatures = 0.0;                // sums
  double largest_gradient = 0.0, largest_curvature = 0.0;  // of one example
  bool has_negative = false;                               // whether a curvature is negative

  void add(double gradient, double curvature, const MagnitudeGrid& grid) {
    gradients += grid.gradients.round(std::abs(gradient));
    curvatures += grid.curvatures.round(curvature);
    largest_gradient = std::max(largest_gradient, std::abs(gradient));
    largest_curvature = std::max(largest_curvature, curvature);
    has_negative |= curvature < 0.0;
  }
  void add(const Magnitudes& other) {
    gradients += other.gradients;
    curvatures += other.curvatures;
    largest_gradient = std::max(largest_gradient, other.largest_gradient);
    largest_curvature = std::max(largest_curvature, other.largest_curvature);
    has_negative |= other.has_negative;
  }
};

// Idle threads of the crew help.
Magnitudes measure(std::span<const Derivatives> derivatives, const MagnitudeGrid& grid, Crew& crew);
// Throws std::invalid_argument if a derivative is not finite or a curvature negative. If there are
// more bits than in a Sum, units are large enough for a Sum to hold any single example.
Units choose_units(std::span<const Magnitudes> by_piece, const UnitBits& bits = {});

}  // namespace hedgerow
